package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// minPrefix is how many digits of a task's ID are enough.
const minPrefix = 4

// Named are the tasks that a word means: the one of that name, ARN, ID or
// beginning of an ID; else those of the service or the family of that name that
// are not stopping, or, when all are, the last of them.
func (s State) Named(word string) []Task {
	for _, t := range slices.Backward(s.Tasks) { // a name may be used again
		if t.Name == word || t.ID == word || t.TaskARN == word {
			return []Task{t}
		}
	}
	var byID, group []Task
	for _, t := range s.Tasks {
		if len(word) >= minPrefix && strings.HasPrefix(t.ID, word) {
			byID = append(byID, t)
		}
		if t.Service == word || t.Family == word {
			group = append(group, t)
		}
	}
	if len(byID) > 0 {
		return byID
	}
	alive := slices.DeleteFunc(slices.Clone(group), Task.Stopping)
	if len(alive) == 0 && len(group) > 0 {
		return group[len(group)-1:]
	}
	return alive
}

// One is the one task that a word means. The error says which there are.
func (s State) One(word string) (Task, error) {
	found := s.Named(word)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Task{}, s.Unknown(word)
	}
	var names []string
	for _, t := range found {
		names = append(names, t.Name)
	}
	return Task{}, fmt.Errorf("%s is several tasks: name one of %s", word, strings.Join(names, ", "))
}

// Unknown is the error about a task that there is not.
func (s State) Unknown(word string) error {
	var names []string
	for _, t := range s.Tasks {
		names = append(names, t.Name)
	}
	if slices.Contains(s.Planned, word) {
		return fmt.Errorf("%s has not been started so far", word)
	}
	return NoSuch("task", word, append(names, s.Planned...))
}

// NoSuch says that there is no such thing, and which it might have been.
func NoSuch(kind, word string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known)
	switch near := nearest.Key(word, known); {
	case near != "":
		return fmt.Errorf("no %s %s; did you mean %s?", kind, word, near)
	case len(known) == 0:
		return fmt.Errorf("no %s %s; there is none so far", kind, word)
	}
	const many = 12
	if len(known) > many {
		known = append(known[:many:many], "...")
	}
	return fmt.Errorf("no %s %s; there is %s", kind, word, strings.Join(known, ", "))
}
