package file

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Unmarshal reads one YAML document into a struct, over what is in it. Unknown
// keys, bare numbers for durations and everything that is no YAML are errors with
// their place; all unknown keys and wrong durations are reported at once. foreign reports,
// by its keys, that a document is something else altogether; empty if it is not.
func Unmarshal[T any](data []byte, into *T, foreign func(keys []string) string) error {
	if err := taskdef.CheckText(data); err != nil {
		return err
	}
	if err := check(data, reflect.TypeFor[T](), foreign); err != nil {
		return err
	}
	if err := yaml.UnmarshalWithOptions(data, into, yaml.DisallowUnknownField()); err != nil {
		return syntaxError(err)
	}
	return nil
}

// check returns every key that the type does not know, with its place and what
// it was probably meant to be. The decoder would stop at the first one.
func check(data []byte, t reflect.Type, foreign func([]string) string) error {
	document, err := parser.ParseBytes(data, 0)
	if err != nil {
		return syntaxError(err)
	}
	bodies := slices.DeleteFunc(document.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch len(bodies) {
	case 0:
		return errors.New("it contains only comments")
	case 1:
	default:
		return fmt.Errorf("line %d: a second document begins here: want one", bodies[1].Body.GetToken().Position.Line)
	}
	var keys []string
	for _, e := range entries(bodies[0].Body) {
		keys = append(keys, keyOf(e))
	}
	if text := foreign(keys); text != "" {
		return errors.New(text)
	}
	return errors.Join(strayKeys(bodies[0].Body, t)...)
}

// syntaxError returns the library's text with the place in the document, without its words about Go.
func syntaxError(err error) error {
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		at := wrong.Token.Position
		return fmt.Errorf("line %d, column %d: want %s, got %s", at.Line, at.Column, describe(wrong.DstType),
			describe(wrong.SrcType))
	}
	if wrong, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		at := wrong.Token.Position
		return fmt.Errorf("line %d, column %d: want a %s, got a %s", at.Line, at.Column, wrong.Expected.YAMLName(),
			wrong.Actual.YAMLName())
	}
	text := strings.TrimRight(yaml.FormatError(err, false, true), "\n")
	if strings.Contains(text, `found character '	'`) {
		text += "\nYAML is indented with spaces, not with tabs"
	}
	return errors.New(text)
}

// describe returns the name of a type in YAML.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "a mapping"
	default:
		return "a number"
	}
}

// strayKeys walks the document beside the type it will be decoded into, and
// looks at durations on the way: the decoder takes a bare number for
// nanoseconds.
func strayKeys(n ast.Node, t reflect.Type) []error {
	var errs []error
	switch t.Kind() {
	case reflect.Pointer:
		return strayKeys(n, t.Elem())
	case reflect.Slice:
		if list, ok := n.(*ast.SequenceNode); ok {
			for _, item := range list.Values {
				errs = append(errs, strayKeys(item, t.Elem())...)
			}
		}
	case reflect.Map:
		for _, e := range entries(n) {
			errs = append(errs, strayKeys(e.Value, t.Elem())...)
		}
	case reflect.Struct:
		fields := fieldsByKey(t)
		if len(fields) == 0 {
			break // a type with forms of its own, which its UnmarshalYAML checks
		}
		for _, e := range entries(n) {
			if field, known := fields[keyOf(e)]; known {
				errs = append(errs, strayKeys(e.Value, field.Type)...)
				errs = append(errs, checkDuration(e, field)...)
			} else if !e.Key.IsMergeKey() {
				errs = append(errs, unknownKey(e, slices.Sorted(maps.Keys(fields))))
			}
		}
	}
	return errs
}

// checkDuration looks at the value of a field that is a duration. Its tag zero has advice
// against 0, and its tag negative allows durations below it.
func checkDuration(e *ast.MappingValueNode, field reflect.StructField) []error {
	if duration := reflect.TypeFor[time.Duration](); field.Type != duration &&
		field.Type != reflect.PointerTo(duration) {
		return nil
	}
	token, problem := e.Value.GetToken(), ""
	switch d, err := time.ParseDuration(token.Value); {
	case err != nil:
		problem = "want a duration such as 60s, got " + token.Value
	case d < 0 && field.Tag.Get("negative") == "":
		problem = fmt.Sprintf("%s: %s: want 0s or more", keyOf(e), token.Value)
	case d == 0 && field.Tag.Get("zero") != "":
		problem = fmt.Sprintf("%s: %s: %s", keyOf(e), token.Value, field.Tag.Get("zero"))
	}
	if problem == "" {
		return nil
	}
	return []error{fmt.Errorf("line %d, column %d: %s", token.Position.Line, token.Position.Column, problem)}
}

func unknownKey(e *ast.MappingValueNode, known []string) error {
	key, at := keyOf(e), e.Key.GetToken().Position
	meant := "known here: " + strings.Join(known, ", ")
	if near := config.Nearest(key, known); near != "" {
		meant = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("line %d, column %d: unknown key %q; %s", at.Line, at.Column, key, meant)
}

// entries returns the entries of a mapping; none for anything else.
func entries(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	case *ast.AnchorNode:
		return entries(m.Value)
	default:
		return nil
	}
}

func keyOf(e *ast.MappingValueNode) string { return e.Key.GetToken().Value }

// fieldsByKey maps the keys of a struct to its fields.
func fieldsByKey(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "-" {
			fields[key] = t.Field(i)
		}
	}
	return fields
}
