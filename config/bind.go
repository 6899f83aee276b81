package config

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// binder stores a decoded document in a struct, by its json and check tags, and
// collects what does not fit.
type binder struct {
	violations, warnings []Finding
}

// bind stores root in to, a pointer to a struct. What is absent, null or not
// allowed keeps the value it has.
func bind(to any, root map[string]any) *binder {
	b := new(binder)
	b.object("$", reflect.ValueOf(to).Elem(), false, root)
	return b
}

func (b *binder) violate(path, format string, args ...any) {
	b.violations = append(b.violations, Finding{path, fmt.Sprintf(format, args...)})
}

// value stores v in to, or records why it cannot be there.
func (b *binder) value(path string, to reflect.Value, r rule, v any) {
	if v == nil && !r.notNull {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		switch to.Kind() {
		case reflect.Pointer:
			to.Set(reflect.New(to.Type().Elem()))
			b.object(path, to.Elem(), r.open, v)
			return
		case reflect.Struct:
			b.object(path, to, r.open, v)
			return
		case reflect.Map:
			b.entries(path, to, r, v)
			return
		}
	case []any:
		if to.Kind() == reflect.Slice {
			b.items(path, to, r, v)
			return
		}
	default:
		if scalar(to, r, v) {
			return
		}
	}
	b.violate(path, "must be %s, not %s", r.allowed(to.Type()), r.got(v))
}

// scalar stores v in to if it may be there, and reports whether it may.
func scalar(to reflect.Value, r rule, v any) bool {
	switch to.Kind() {
	case reflect.String:
		if text, ok := v.(string); ok && r.admits(text) {
			to.SetString(text)
			return true
		}
	case reflect.Bool:
		if on, ok := v.(bool); ok {
			to.SetBool(on)
			return true
		}
	case reflect.Int:
		if n, ok := integer(v); ok && r.min <= n && n <= r.max {
			to.SetInt(n)
			return true
		}
	}
	return false
}

// integer is v as an integer, which may be written as 1.0 or 1e3.
func integer(v any) (int64, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(number.String())
	if !ok || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// object stores the fields of an object in a struct. Unlike encoding/json it
// does not match names in another case.
func (b *binder) object(path string, to reflect.Value, open bool, fields map[string]any) {
	var known []string
	for f, value := range to.Fields() {
		name := f.Tag.Get("json")
		if name == "-" {
			continue
		}
		known = append(known, name)
		r := ruleOf(f.Tag.Get("check"))
		if v, ok := fields[name]; ok {
			b.value(field(path, name), value, r, v)
		} else if r.required {
			b.violate(field(path, name), "is required; must be %s", r.allowed(f.Type))
		}
	}
	slices.Sort(known)
	for name := range fields {
		switch at := field(path, name); {
		case slices.Contains(known, name):
		case open:
			b.warnings = append(b.warnings, Finding{at, "unknown field, ignored" + suggest(name, known)})
		case hint(at) != "":
			b.violate(at, "unknown field: %s; allowed: %s", hint(at), strings.Join(known, ", "))
		default:
			b.violate(at, "unknown field%s; allowed: %s", suggest(name, known), strings.Join(known, ", "))
		}
	}
}

// entries stores the fields of an object in a map. Those of an opaque one, of
// type map[string]any, may be anything.
func (b *binder) entries(path string, to reflect.Value, r rule, fields map[string]any) {
	if to.Type().Elem().Kind() == reflect.Interface {
		to.Set(reflect.ValueOf(plain(fields)))
		return
	}
	m := reflect.MakeMap(to.Type())
	for name, v := range fields {
		elem := reflect.New(to.Type().Elem()).Elem()
		b.value(field(path, name), elem, r.elem(), v)
		m.SetMapIndex(reflect.ValueOf(name), elem)
	}
	to.Set(m)
}

func (b *binder) items(path string, to reflect.Value, r rule, list []any) {
	s, before := reflect.MakeSlice(to.Type(), len(list), len(list)), len(b.violations)
	for i, v := range list {
		b.value(item(path, i), s.Index(i), r.elem(), v)
	}
	to.Set(s)
	if !r.unique || len(b.violations) > before {
		return
	}
	first := map[any]int{}
	for i, v := range list {
		if at, again := first[v]; again {
			b.violate(item(path, i), "must not repeat item %d", at)
			return
		}
		first[v] = i
	}
}

// plain is v with its numbers as encoding/json has them by default.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Float64() // decode refused what overflows
		return n
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}

// suggest is the question whether another name was meant, or nothing.
func suggest(name string, known []string) string {
	if near := nearest.Key(name, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// hint explains a field that other versions have. The key is its path.
func hint(path string) string {
	switch path {
	case "$.consulLogin.extraLoginFlags":
		return "removed in 0.6.0, because login no longer runs the consul command; use meta, region, stsEndpoint and serverIdHeaderValue"
	case "$.controller", "$.transparentProxy", "$.consulLogin.datacenter":
		return "belongs to the agentless configuration, which has consulServers at its root"
	}
	return ""
}
