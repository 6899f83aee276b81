package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Violation is one value that the configuration must not have.
type Violation struct {
	// Path is the JSON path of the value, for example
	// $.service.checks[0].interval; $ is the document.
	Path string `json:"path"`
	// Message says what is allowed there.
	Message string `json:"message"`
}

// Warning is a value that is accepted but does not do what it seems to.
type Warning struct {
	// Path is the JSON path of the value.
	Path string `json:"path"`
	// Message says why it has no effect.
	Message string `json:"message"`
}

// InvalidError is a document that cannot be used. It names every violation at
// once, sorted by path.
type InvalidError struct{ Violations []Violation }

// Error begins with "invalid config: " and has one line per violation.
func (e *InvalidError) Error() string {
	if len(e.Violations) == 1 {
		v := e.Violations[0]
		return "invalid config: " + v.Path + ": " + v.Message
	}
	var b strings.Builder
	fmt.Fprintf(&b, "invalid config: %d violations", len(e.Violations))
	for _, v := range e.Violations {
		b.WriteString("\n  " + v.Path + ": " + v.Message)
	}
	return b.String()
}

// invalid makes an InvalidError of a single violation.
func invalid(path, format string, args ...any) error {
	return &InvalidError{Violations: []Violation{{Path: path, Message: fmt.Sprintf(format, args...)}}}
}

// sorted returns the violations by path and message, each once: two keywords
// of the schema often object to the same value for the same reason.
func sorted(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(vs)
}

// field returns the path of a field of the object at path, in brackets where
// a dot would be ambiguous.
func field(path, name string) string {
	for i, r := range name {
		letter := r == '_' || r == '$' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return path + "[" + strconv.Quote(name) + "]"
		}
	}
	if name == "" {
		return path + `[""]`
	}
	return path + "." + name
}

// item returns the path of an element of the list at path.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
