package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// prefixesOfAWS begin the names of the containers that AWS adds to a task: those of the ECS
// agent, with a character that no name of a task definition may have, the proxy of Service
// Connect and the agent of GuardDuty. The last two end in random characters, and their Type
// in the metadata may be NORMAL.
var prefixesOfAWS = []string{"~internal~", "ecs-service-connect-", "aws-guardduty-agent-"}

// IsAWSContainer reports whether AWS adds a container of that name to a task. It is no application, and
// the mesh does not wait for it: ECS stops the proxy of Service Connect after all others.
func IsAWSContainer(name string) bool {
	return slices.ContainsFunc(prefixesOfAWS, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// IsMeshContainer reports whether a container of that name belongs to the mesh, and is no
// application.
func IsMeshContainer(name string) bool {
	switch name {
	case ContainerMeshInit, ContainerConsulClient, ContainerSidecarProxy,
		ContainerHealthSync, ContainerInstall, ContainerDataplane, ContainerControlPlane:
		return true
	}
	return false
}

// Ignored are containers that a shutdown does not wait for: names, and prefixes with a * at
// their end.
type Ignored []string

// ParseIgnored reads a list with commas, spaces or lines. The error has all that is wrong with it.
func ParseIgnored(text string) (Ignored, error) {
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	var mistakes []string
	for _, name := range list {
		prefix := strings.TrimSuffix(name, "*")
		switch {
		case prefix == "":
			mistakes = append(mistakes,
				fmt.Sprintf("%q would ignore every container: write the beginning of a name before the *", name))
		case strings.Contains(prefix, "*"):
			mistakes = append(mistakes,
				fmt.Sprintf("%q: a * may only be at the end, after the beginning of a name", name))
		case !isPossible(prefix) && !IsAWSContainer(prefix):
			mistakes = append(mistakes,
				fmt.Sprintf("%q: a container's name has up to 255 letters, digits, hyphens and underscores", name))
		}
	}
	if len(mistakes) > 0 {
		return nil, errors.New(strings.Join(mistakes, "; "))
	}
	return list, nil
}

// isPossible reports whether ECS takes a name of a container.
func isPossible(name string) bool {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return len(name) <= 255 && !strings.ContainsFunc(name,
		func(r rune) bool { return !strings.ContainsRune(characters, r) })
}

// Has reports whether a container of that name is ignored.
func (i Ignored) Has(name string) bool {
	return slices.ContainsFunc(i, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
	})
}
