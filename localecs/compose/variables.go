package compose

import (
	"fmt"
	"slices"
	"strings"
)

// imageVariables returns the names of the variables that replace images, by image: CONSUL_IMAGE for
// hashicorp/consul:1.20.1. Images with the same last part get the whole name, with the tag if needed.
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
	for n, i := range images { // those that differ only in punctuation
		if names[i] == "" {
			names[i] = fmt.Sprintf("%s_%d_IMAGE", variable(i), n+1)
		}
	}
	return names
}

// repository returns the image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}

func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// variable converts a text to the name of a variable.
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

// secretVariable returns the variable with the value of a valueFrom: the name of the secret or
// parameter, with the JSON key if there is one.
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
