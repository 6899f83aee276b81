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

// checkSyntax returns an *InvalidError for a text that is not exactly one JSON
// value, and otherwise the fields of the object that it is.
func checkSyntax(doc []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil, invalid("%s is unset or empty: want a JSON object with at least bootstrapDir", EnvVar)
	}
	var root map[string]json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(doc, &root); !errors.As(err, &syntax) {
		return root, nil
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
	return nil, invalid("%s: %s", position(doc, at), text)
}

// position formats the place of the byte at offset, both counted from 1, columns
// in characters.
func position(doc []byte, offset int) string {
	before := doc[:min(max(offset, 0), len(doc))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

func outOfRange(number json.Number) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(number)), "e")
	exp, err := strconv.Atoi(cmp.Or(exponent, "0"))
	_, overflow := number.Float64()
	return err != nil || overflow != nil || len(mantissa) > maxExponent || exp > maxExponent || exp < -maxExponent
}
