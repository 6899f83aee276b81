package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// violations returns everything that is wrong with v and below it, unsorted.
func (s *schema) violations(path string, v any) []Violation {
	if !s.admits(v) {
		return []Violation{{path, "must be " + s.allowed() + ", not " + s.got(v)}}
	}
	switch v := v.(type) {
	case map[string]any:
		return s.fieldViolations(path, v)
	case []any:
		return s.itemViolations(path, v)
	}
	return nil
}

func (s *schema) fieldViolations(path string, object map[string]any) []Violation {
	var vs []Violation
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			vs = append(vs, Violation{field(path, name), "is required; must be " + s.Properties[name].allowed()})
		}
	}
	for name, v := range object {
		p, known := s.Properties[name]
		switch extra := s.AdditionalProperties; {
		case known:
			vs = append(vs, p.violations(field(path, name), v)...)
		case extra == nil || extra.any:
		case extra.schema != nil:
			vs = append(vs, extra.schema.violations(field(path, name), v)...)
		default:
			vs = append(vs, Violation{field(path, name), unknownField(path, name, s)})
		}
	}
	return vs
}

func (s *schema) itemViolations(path string, list []any) []Violation {
	var vs []Violation
	if s.Items != nil {
		for i, v := range list {
			vs = append(vs, s.Items.violations(item(path, i), v)...)
		}
	}
	if s.UniqueItems {
		if first, again, ok := duplicate(list); ok {
			vs = append(vs, Violation{item(path, again), fmt.Sprintf("must not repeat item %d", first)})
		}
	}
	return vs
}

// admits reports whether v itself may stand there, whatever it contains.
func (s *schema) admits(v any) bool {
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(typ string) bool { return isType(v, typ) }) {
		return false
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return equal(e, v) }) {
		return false
	}
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v) >= s.MinLength &&
			(s.Pattern == nil || s.Pattern.MatchString(v)) &&
			(s.Format != "go-duration" || isDuration(v))
	case json.Number:
		n, ok := kindNumber(v)
		return ok && (s.Minimum == nil || n.Cmp(new(big.Rat).SetInt64(*s.Minimum)) >= 0) &&
			(s.Maximum == nil || n.Cmp(new(big.Rat).SetInt64(*s.Maximum)) <= 0)
	}
	return true
}

// isType reports whether v has a type of JSON Schema, to which 1.0 is an integer.
func isType(v any, typ string) bool {
	switch v := v.(type) {
	case nil:
		return typ == "null"
	case bool:
		return typ == "boolean"
	case string:
		return typ == "string"
	case []any:
		return typ == "array"
	case map[string]any:
		return typ == "object"
	default:
		n, ok := kindNumber(v)
		return ok && (typ == "number" || typ == "integer" && n.IsInt())
	}
}

// isDuration refuses what the schema's pattern cannot, numbers that overflow.
// Consul parses durations with the same function. Empty means absent.
func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return s == "" || err == nil
}

// duplicate finds the first item that was there before.
func duplicate(list []any) (first, again int, ok bool) {
	seen := map[string]int{}
	for again, v := range list {
		if text, ok := v.(string); ok {
			if first, ok := seen[text]; ok {
				return first, again, true
			}
			seen[text] = again
			continue
		}
		for first := range again {
			if equal(list[first], v) {
				return first, again, true
			}
		}
	}
	return 0, 0, false
}

// equal compares as JSON Schema does: 1 and 1.0 are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		x, okA := kindNumber(a)
		y, okB := kindNumber(b)
		return okA && okB && x.Cmp(y) == 0
	default:
		return a == b
	}
}

// allowed says in words what a schema takes. Its title comes first: the schema
// has one where the keywords would be unreadable.
func (s *schema) allowed() string {
	switch {
	case s.Title != "":
		return s.Title
	case s.Enum != nil:
		return oneOf(s.Enum)
	case slices.Contains(s.Type, "integer"):
		return fmt.Sprintf("an integer from %d to %d", *s.Minimum, *s.Maximum)
	case slices.Contains(s.Type, "boolean"):
		return "true or false"
	case slices.Contains(s.Type, "string"):
		if s.MinLength > 0 {
			return "a string that is not empty"
		}
		return "a string"
	case slices.Contains(s.Type, "array"):
		if s.Items != nil && slices.Contains(s.Items.Type, "string") {
			return "a list of strings"
		}
		return "a list of objects"
	case s.AdditionalProperties != nil && s.AdditionalProperties.schema != nil:
		return "an object whose values are each " + s.AdditionalProperties.schema.allowed()
	default:
		return "an object"
	}
}

func oneOf(values []any) string {
	var words []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			words = append(words, s)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// got shows the offending value. Only short scalars where the schema takes a
// scalar of that kind are shown themselves; the rest may hold a secret.
func (s *schema) got(v any) string {
	if text, ok := v.(string); ok && (s.Enum != nil || s.Pattern != nil || s.MinLength > 0) && len(text) <= 60 {
		return strconv.Quote(text)
	}
	if slices.Contains(s.Type, "integer") {
		if _, ok := kindNumber(v); ok {
			return fmt.Sprint(v)
		}
	}
	return kindOf(v)
}
