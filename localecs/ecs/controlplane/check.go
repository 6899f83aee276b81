package controlplane

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// MaxDescribed is how many things one call may name.
const MaxDescribed = 100

// atMost limits the length of a list.
func atMost(member string, n, limit int) error {
	if n > limit {
		return shapes.Invalid("%s can have at most %d items.", member, limit)
	}
	return nil
}

func short(member, text string, limit int) error {
	if utf8.RuneCountInString(text) > limit {
		return shapes.Invalid("%s can have at most %d characters.", member, limit)
	}
	return nil
}

// enum wants each value to be one of the allowed; empty is absent.
func enum(member string, values []string, allowed ...string) error {
	for _, v := range values {
		if v != "" && !slices.Contains(allowed, v) {
			return shapes.Invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
				"Member must satisfy enum value set: [%s]",
				v, member, strings.Join(allowed, ", "))
		}
	}
	return nil
}

func checkLaunchType(v string) error {
	return enum("launchType", []string{v}, "EC2", shapes.Fargate, "EXTERNAL", "MANAGED_INSTANCES")
}

func checkPropagateTags(v string) error {
	return enum("propagateTags", []string{v}, "TASK_DEFINITION", "SERVICE", "NONE")
}

func checkSchedulingStrategy(v string) error {
	return enum("schedulingStrategy", []string{v}, "REPLICA", daemon)
}

// The limits of tags: how many, and their lengths.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// Tags applies AWS's rules for tags that a user sets.
func Tags(tags []shapes.Tag) error {
	if err := atMost("tags", len(tags), maxTags); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "":
			return shapes.Invalid("Tag key can't be empty.")
		case strings.HasPrefix(strings.ToLower(t.Key), "aws:"):
			return shapes.Invalid("Tag keys can't start with 'aws:'.")
		case utf8.RuneCountInString(t.Key) > maxTagKey:
			return shapes.Invalid("Tag keys can have at most %d characters.", maxTagKey)
		case utf8.RuneCountInString(t.Value) > maxTagValue:
			return shapes.Invalid("Tag values can have at most %d characters.", maxTagValue)
		case seen[t.Key]:
			return shapes.Invalid("Duplicate tag keys found.")
		}
		seen[t.Key] = true
	}
	return nil
}

// MergeTags puts more over tags, by key, in the order of their first sight.
func MergeTags(tags []shapes.Tag, more ...shapes.Tag) []shapes.Tag {
	out := slices.Clone(tags)
	for _, t := range more {
		if i := slices.IndexFunc(out, func(o shapes.Tag) bool { return o.Key == t.Key }); i >= 0 {
			out[i] = t
			continue
		}
		out = append(out, t)
	}
	return out
}
