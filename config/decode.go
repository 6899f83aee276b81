package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// maxDepth bounds nesting; proxy.config is the only place that has any.
const maxDepth = 100

// decoder stores a text that is known to be JSON in a struct, by its json and
// check tags, and collects what does not fit. Unlike encoding/json it does not
// match names in another case, and refuses a name that is given twice.
type decoder struct {
	doc []byte
	dec *json.Decoder
	// malformed are violations at which the rest may be misread.
	malformed, violations, warnings []Finding
}

// decode stores doc in to, a pointer to a struct. What is absent, null or not
// allowed keeps the value it has.
func decode(doc []byte, to any) *decoder {
	d := &decoder{doc: doc, dec: json.NewDecoder(bytes.NewReader(doc))}
	d.dec.UseNumber()
	d.value("$", reflect.ValueOf(to).Elem(), rule{notNull: true}, 0)
	return d
}

func (d *decoder) violate(path, format string, args ...any) {
	d.violations = append(d.violations, Finding{path, fmt.Sprintf(format, args...)})
}

// malform records a violation at the last byte read.
func (d *decoder) malform(path, format string, args ...any) {
	at := position(d.doc, int(d.dec.InputOffset())-1)
	d.malformed = append(d.malformed, Finding{path, at + ": " + fmt.Sprintf(format, args...)})
}

// token reads the next token. There is one, since the text is JSON.
func (d *decoder) token() json.Token {
	t, _ := d.dec.Token()
	return t
}

// value reads the next value and stores it in to, or records why it cannot be there.
func (d *decoder) value(path string, to reflect.Value, r rule, depth int) {
	if depth > maxDepth {
		d.malform(path, "nested more than %d levels deep", maxDepth)
		var skipped json.RawMessage
		_ = d.dec.Decode(&skipped)
		return
	}
	token, kind := d.token(), to.Kind()
	if token == json.Delim('{') && (kind == reflect.Pointer || kind == reflect.Struct || kind == reflect.Map) {
		d.object(path, to, r, depth)
		return
	}
	if token == json.Delim('[') && kind == reflect.Slice {
		d.list(path, to, r, depth)
		return
	}
	v := d.untyped(path, token, depth)
	if v == nil && !r.notNull || scalar(to, r, v) {
		return
	}
	d.violate(path, "must be %s, not %s", r.allowed(to.Type()), r.got(v))
}

// untyped reads the rest of the value that begins with token.
func (d *decoder) untyped(path string, token json.Token, depth int) any {
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			var object map[string]any
			d.object(path, reflect.ValueOf(&object).Elem(), rule{}, depth)
			return object
		}
		var list []any
		d.list(path, reflect.ValueOf(&list).Elem(), rule{}, depth)
		return list
	case json.Number:
		if absurd(t) {
			d.malform(path, "the number is too large or too small")
			return nil
		}
	}
	return token
}

// scalar stores v in to if it may be there, and reports whether it may. In an
// opaque object everything may.
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
	case reflect.Interface:
		if n, ok := v.(json.Number); ok {
			v, _ = n.Float64()
		}
		if v != nil {
			to.Set(reflect.ValueOf(v))
		}
		return true
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

// object reads the rest of an object into a struct, a pointer to one, or a map.
func (d *decoder) object(path string, to reflect.Value, r rule, depth int) {
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	isMap, known, given := to.Kind() == reflect.Map, fieldsOf(to), map[string]bool{}
	if isMap {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for d.dec.More() {
		name, _ := d.token().(string)
		at := field(path, name)
		if given[name] {
			d.malform(at, "given twice; keep one")
		}
		given[name] = true
		if f, ok := known[name]; ok {
			d.value(at, f.to, f.rule, depth+1)
			continue
		}
		elem := reflect.New(reflect.TypeFor[any]()).Elem()
		if isMap {
			elem = reflect.New(to.Type().Elem()).Elem()
		}
		d.value(at, elem, r.elem(), depth+1)
		if isMap {
			to.SetMapIndex(reflect.ValueOf(name), elem)
		} else {
			d.unknown(at, name, known, r.open)
		}
	}
	d.token()
	for name, f := range known {
		if f.rule.required && !given[name] {
			d.violate(field(path, name), "is required; must be %s", f.rule.allowed(f.to.Type()))
		}
	}
}

// list reads the rest of a list into a slice.
func (d *decoder) list(path string, to reflect.Value, r rule, depth int) {
	items, before := reflect.MakeSlice(to.Type(), 0, 0), len(d.violations)
	for d.dec.More() {
		elem := reflect.New(to.Type().Elem()).Elem()
		d.value(item(path, items.Len()), elem, r.elem(), depth+1)
		items = reflect.Append(items, elem)
	}
	d.token()
	to.Set(items)
	if texts, ok := items.Interface().([]string); ok && r.unique && len(d.violations) == before {
		for i, text := range texts {
			if first := slices.Index(texts, text); first < i {
				d.violate(item(path, i), "must not repeat item %d", first)
				return
			}
		}
	}
}

// unknown records a field that its object does not have.
func (d *decoder) unknown(at, name string, known map[string]structField, open bool) {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	text := hint(at)
	if near := nearest.Key(name, names); text == "" && near != "" {
		text = `; did you mean "` + near + `"?`
	}
	if open {
		d.warnings = append(d.warnings, Finding{at, "unknown field, ignored" + text})
	} else {
		d.violate(at, "unknown field%s; allowed: %s", text, strings.Join(names, ", "))
	}
}

// hint explains a field that other versions have. The key is its path.
func hint(path string) string {
	switch path {
	case "$.consulLogin.extraLoginFlags":
		return ": removed in 0.6.0, because login no longer runs the consul command; use meta, region, stsEndpoint and serverIdHeaderValue"
	case "$.controller", "$.transparentProxy", "$.consulLogin.datacenter":
		return ": belongs to the agentless configuration, which has consulServers at its root"
	}
	return ""
}
