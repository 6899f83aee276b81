package config

import (
	"bytes"
	"cmp"
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
// json.Number. Every error is an *InvalidError with line and column.
func decode(doc []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, invalid("%s is unset or empty: want a JSON object with at least bootstrapDir", EnvVar)
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
		return nil, invalid("must be an object, not %s", kindOf(v))
	}
	return root, nil
}

func syntaxError(doc []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return invalid("%v", err)
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
	return invalid("%s: %s", position(doc, at), text)
}

// position formats the place of the byte at offset, both counted from 1, columns
// in characters.
func position(doc []byte, offset int) string {
	before := doc[:min(max(offset, 0), len(doc))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// reader builds the value of a text that is known to be JSON. It finds what
// encoding/json accepts: a key given twice, of which the last would win
// silently, and values of absurd size.
type reader struct {
	doc        []byte
	dec        *json.Decoder
	violations []Finding
}

func (r *reader) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		r.violate(path, "nested more than %d levels deep", maxDepth)
		var skipped json.RawMessage
		return nil, r.dec.Decode(&skipped)
	}
	tok, err := r.dec.Token()
	switch tok := tok.(type) {
	case json.Delim:
		return r.elements(path, depth, tok == '{')
	case json.Number:
		if absurd(tok) {
			r.violate(path, "the number is too large or too small")
		}
	}
	return tok, err
}

// elements reads the rest of an object or a list.
func (r *reader) elements(path string, depth int, object bool) (any, error) {
	fields, items := map[string]any{}, []any{}
	for r.dec.More() {
		below, key := item(path, len(items)), ""
		if object {
			tok, err := r.dec.Token()
			if err != nil {
				return nil, err
			}
			key, _ = tok.(string)
			below = field(path, key)
			if _, twice := fields[key]; twice {
				r.violate(below, "given twice; keep one")
			}
		}
		v, err := r.value(below, depth+1)
		if err != nil {
			return nil, err
		}
		if object {
			fields[key] = v
		} else {
			items = append(items, v)
		}
	}
	if _, err := r.dec.Token(); err != nil || !object {
		return items, err
	}
	return fields, nil
}

// violate records a violation at the last byte read.
func (r *reader) violate(path, format string, args ...any) {
	at := position(r.doc, int(r.dec.InputOffset())-1)
	r.violations = append(r.violations, Finding{path, at + ": " + fmt.Sprintf(format, args...)})
}

func absurd(number json.Number) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(number)), "e")
	exp, err := strconv.Atoi(cmp.Or(exponent, "0"))
	_, overflow := number.Float64()
	return err != nil || overflow != nil || len(mantissa) > maxExponent || exp > maxExponent || exp < -maxExponent
}
