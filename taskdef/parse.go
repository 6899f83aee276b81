package taskdef

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/meshtask/consul-ecs/internal/textfile"
)

// Warning is something that ECS would perhaps refuse and we accept: an unknown
// key, a value the rules doubt.
type Warning struct {
	// Path is where, such as $.containerDefinitions[0].healthcheck.
	Path string
	// Message says what and, if known, what was probably meant.
	Message string
}

// String is "path: message".
func (w Warning) String() string { return w.Path + ": " + w.Message }

// InvalidError says that a document is JSON but no task definition: values of
// the wrong type.
type InvalidError struct{ Violations []Violation }

// Error has one line per violation.
func (e *InvalidError) Error() string {
	lines := []string{"invalid task definition:"}
	for _, v := range e.Violations {
		lines = append(lines, "  "+v.String())
	}
	return strings.Join(lines, "\n")
}

// Parse reads a task definition as `aws ecs register-task-definition
// --cli-input-json` takes it, or as describe-task-definition prints it, and
// fills in the defaults. Unknown keys and keys given twice are warnings. The
// error is a *textfile.Fault, or an *InvalidError that lists every value of a
// wrong type.
// Whether ECS would accept the definition is Validate's business.
func Parse(doc []byte) (*TaskDefinition, []Warning, error) {
	tree, err := decode(doc)
	if err != nil {
		return nil, nil, err
	}
	b := binder{warnings: repeatedKeys(doc)}
	d := &TaskDefinition{}
	if inner, wrapped := described(tree); tree == nil || wrapped && inner == nil {
		b.wrongType("$", describeType(reflect.Struct), nil)
	} else if wrapped {
		b.bind(reflect.ValueOf(d).Elem(), inner, "$.taskDefinition")
		b.bindWrapper(d, tree.(map[string]any))
	} else {
		b.bind(reflect.ValueOf(d).Elem(), tree, "$")
	}
	if len(b.violations) > 0 {
		return nil, b.warnings, &InvalidError{Violations: b.violations}
	}
	d.SetDefaults()
	return d, b.warnings, nil
}

// decode turns a document into maps, lists, strings, numbers and booleans.
func decode(doc []byte) (any, error) {
	if err := textfile.Check(doc); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := json.Unmarshal(doc, &raw); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return nil, fmt.Errorf("read task definition: %w", err)
		}
		return nil, locate(doc, int(syntax.Offset), syntax.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read task definition: %w", err)
	}
	return tree, nil
}

// locate turns the number of bytes read into a line and a column. The byte
// that is wrong is the last one read, except at the end of the document.
func locate(doc []byte, offset int, message string) error {
	at := offset - 1
	if strings.HasPrefix(message, "unexpected end") {
		at = len(doc)
	}
	if looksLikeYAML(doc) {
		return textfile.At(doc, at, "this looks like YAML, but ECS takes JSON; `yq -o=json` converts it")
	}
	return textfile.At(doc, at, message+advice(doc, at))
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

// looksLikeYAML reports whether the first line that says something could only be
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

// described finds the definition inside a describe-task-definition answer.
func described(tree any) (any, bool) {
	outer, ok := tree.(map[string]any)
	if !ok {
		return nil, false
	}
	inner, ok := outer["taskDefinition"]
	if _, plain := outer["containerDefinitions"]; plain {
		return nil, false
	}
	return inner, ok
}
