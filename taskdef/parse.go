package taskdef

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Warning is something that ECS would perhaps refuse and we accept: an unknown
// key, a value the rules doubt.
type Warning struct {
	// Path is where, such as $.containerDefinitions[0].healthcheck.
	Path string
	// Message is the problem and, if known, what was probably meant.
	Message string
	// Near is the key that was probably meant by an unknown one; empty without any.
	Near string
}

// String returns "path: message".
func (w Warning) String() string { return OneLine(w.Path + ": " + w.Message) }

// InvalidError is returned for a document that is JSON but no task definition: values of
// the wrong type.
type InvalidError struct{ Violations []Violation }

// Error returns one line per violation.
func (e *InvalidError) Error() string {
	lines := []string{"invalid task definition:"}
	for _, v := range e.Violations {
		lines = append(lines, "  "+v.String())
	}
	return strings.Join(lines, "\n")
}

// checkJSON reports what keeps a document from being JSON.
func checkJSON(doc []byte, f format) error {
	if err := CheckText(doc); err != nil {
		return err
	}
	syntax, invalid := errors.AsType[*json.SyntaxError](json.Unmarshal(doc, new(json.RawMessage)))
	if !invalid {
		return nil
	}
	return locate(doc, int(syntax.Offset), syntax.Error(), f)
}

// locate turns the number of bytes read into a line and a column. The byte
// that is wrong is the last one read, except at the end of the document.
func locate(doc []byte, offset int, message string, f format) error {
	at := offset - 1
	if strings.HasPrefix(message, "unexpected end") {
		at = len(doc)
	}
	if f != formatTemplate && looksLikeYAML(doc) {
		return faultAt(doc, at, "this looks like YAML, but ECS takes JSON; `yq -o=json` converts it")
	}
	return faultAt(doc, at, message+advice(doc, at))
}

// advice names the usual mistake behind a syntax error at a byte.
func advice(doc []byte, at int) string {
	before := bytes.TrimSpace(doc[:at])
	switch {
	case at == len(doc):
		return ": something is cut off, or a bracket is not closed"
	case doc[at] == '/' || doc[at] == '#':
		return ": JSON has no comments"
	case doc[at] == '\'':
		return ": JSON has double quotes only"
	case (doc[at] == '}' || doc[at] == ']') && bytes.HasSuffix(before, []byte(",")):
		return ": no comma may stand before it"
	}
	return ""
}

// looksLikeYAML reports whether the first line with content could only be
// YAML's.
func looksLikeYAML(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return regexp.MustCompile(`^(---|- |[A-Za-z]\w*:( |$))`).Match(line)
		}
	}
	return false
}
