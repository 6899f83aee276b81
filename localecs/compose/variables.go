package compose

import (
	"fmt"
	"slices"
	"strings"
)

// imageVariables are the variables by which images are replaced, by image:
// CONSUL_IMAGE for hashicorp/consul:1.20.1. Where two images would have the same,
// the whole names make them, with their tags if that is what differs.
func imageVariables(tasks []FileTask) map[string]string {
	var images []string
	for _, t := range tasks {
		for _, c := range t.Definition.ContainerDefinitions {
			images = append(images, c.Image)
		}
	}
	slices.Sort(images)
	images = slices.Compact(images)
	spellings := []func(string) string{
		func(i string) string { return variable(lastPart(repository(i))) },
		func(i string) string { return variable(repository(i)) },
		variable,
	}
	names := map[string]string{}
	for _, spell := range spellings {
		count := map[string]int{}
		for _, i := range images {
			count[spell(i)]++
		}
		for _, i := range images {
			if names[i] == "" && count[spell(i)] == 1 {
				names[i] = spell(i) + "_IMAGE"
			}
		}
	}
	for n, i := range images { // which differ in nothing but punctuation
		if names[i] == "" {
			names[i] = fmt.Sprintf("%s_%d_IMAGE", variable(i), n+1)
		}
	}
	return names
}

// repository is the image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}

func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// variable is a text as the name of a variable.
func variable(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, text)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// secretVariable is the variable that has the value behind a valueFrom: the
// secret's or parameter's own name, with the json-key if one is taken out.
func (b *builder) secretVariable(valueFrom string) string {
	name := valueFrom
	if parts := strings.Split(valueFrom, ":"); len(parts) > 5 && parts[0] == "arn" {
		name = strings.TrimPrefix(strings.Trim(strings.Join(parts[5:], ":"), ":"), "parameter/")
		if parts[2] == "secretsmanager" && len(parts) > 6 {
			name = strings.TrimRight(strings.Join(parts[6:], ":"), ":")
		}
	}
	name = variable(strings.Trim(name, "/"))
	for base, n := name, 2; b.secrets[name] != "" && b.secrets[name] != valueFrom; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	b.secrets[name] = valueFrom
	return name
}
