package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxExponent bounds the exponents of numbers: what lies beyond fits no field,
// and exact arithmetic on 1e999999999 would take all memory.
const maxExponent = 300

// maxDepth bounds nesting; proxy.config is the only place that has any.
const maxDepth = 100

// decode reads doc, which must be exactly one JSON object. Numbers stay
// json.Number. Errors carry line and column.
func decode(doc []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, invalid("$", "%s is unset or empty: want a JSON object with at least bootstrapDir", EnvVar)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(doc, &whole); err != nil {
		return nil, syntaxError(doc, err)
	}
	r := reader{doc: doc, dec: json.NewDecoder(bytes.NewReader(doc))}
	r.dec.UseNumber()
	v, err := r.value("$", 0)
	if err != nil {
		return nil, syntaxError(doc, err)
	}
	if len(r.violations) > 0 {
		return nil, &InvalidError{Violations: sorted(r.violations)}
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, invalid("$", "must be an object, not %s", kindOf(v))
	}
	return root, nil
}

func syntaxError(doc []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return invalid("$", "%v", err)
	}
	// Offset counts the bytes read including the offending one; at the end of
	// a truncated document there is none.
	at := int(syntax.Offset) - 1
	text := syntax.Error()
	if strings.Contains(text, "unexpected end") {
		at, text = len(doc), "the document is cut off: "+text
	}
	if strings.Contains(text, "after top-level value") {
		text = "only one JSON object is allowed: " + text
	}
	return invalid("$", "%s: %s", position(doc, at), text)
}

// position says where the byte at offset is, both counted from 1, columns in
// characters.
func position(doc []byte, offset int) string {
	before := doc[:min(max(offset, 0), len(doc))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// reader builds the value of a text that is known to be JSON. It finds what
// encoding/json lets pass: a key given twice, of which the last would win
// silently, and values of absurd size.
type reader struct {
	doc        []byte
	dec        *json.Decoder
	violations []Violation
}

func (r *reader) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		r.object(path, "nested more than %d levels deep", maxDepth)
		var skipped json.RawMessage
		return nil, r.dec.Decode(&skipped)
	}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return r.fields(path, depth)
		}
		return r.items(path, depth)
	case json.Number:
		if absurd(string(tok)) {
			r.object(path, "the number is too large or too small")
			return nil, nil
		}
	}
	return tok, nil
}

func (r *reader) fields(path string, depth int) (map[string]any, error) {
	fields := map[string]any{}
	for r.dec.More() {
		tok, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		if _, twice := fields[key]; twice {
			r.object(field(path, key), "given twice; keep one")
		}
		if fields[key], err = r.value(field(path, key), depth+1); err != nil {
			return nil, err
		}
	}
	_, err := r.dec.Token()
	return fields, err
}

func (r *reader) items(path string, depth int) ([]any, error) {
	items := []any{}
	for r.dec.More() {
		v, err := r.value(item(path, len(items)), depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := r.dec.Token()
	return items, err
}

// object notes a violation at the last byte read.
func (r *reader) object(path, format string, args ...any) {
	at := position(r.doc, int(r.dec.InputOffset())-1)
	r.violations = append(r.violations, Violation{path, at + ": " + fmt.Sprintf(format, args...)})
}

func absurd(number string) bool {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return len(number) > maxExponent
	}
	exp, err := strconv.Atoi(number[i+1:])
	return err != nil || i > maxExponent || exp > maxExponent || exp < -maxExponent
}

// kindOf names the JSON type of v with its article.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
