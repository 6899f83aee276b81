package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Finding is a problem with one value of a document: a violation, which the
// document must not have, or a warning about a value without effect.
type Finding struct {
	// Path is the JSON path of the value, for example
	// $.service.checks[0].interval; $ is the document.
	Path string `json:"path"`
	// Message states what is allowed there, or why the value has no effect.
	Message string `json:"message"`
}

// InvalidError is a document that cannot be used. It names every violation at
// once, sorted by path.
type InvalidError struct {
	Violations []Finding
	generation string
}

// GenerationName returns the generation whose fields the document was compared
// with, agent or agentless, for output. It is empty for what is not JSON.
func (e *InvalidError) GenerationName() string { return e.generation }

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

// invalid returns an InvalidError for the whole document.
func invalid(format string, args ...any) error {
	return &InvalidError{Violations: []Finding{{"$", fmt.Sprintf(format, args...)}}}
}

// sorted orders findings by path and message.
func sorted(fs []Finding) []Finding {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return fs
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
