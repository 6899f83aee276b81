package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
)

// maxDepth bounds nesting; proxy.config is the only place that has any.
const maxDepth = 100

// decoder stores a text that is known to be JSON in a struct, by its json and
// check tags, and collects what does not fit. Unlike encoding/json it does not
// match names in another case, and refuses a name that is given twice.
type decoder struct {
	doc []byte
	dec *json.Decoder
	// generation is the one whose fields are allowed.
	generation string
	// fields has what fieldsOf has returned.
	fields map[reflect.Type]map[string]structField
	// signs are the generations of the fields that one generation alone has.
	signs map[string]bool
	// malformed are violations at which the rest may be misread.
	malformed, violations, warnings []Finding
}

// decode reads doc as a document of that generation. What is absent, null or not
// allowed is left at its zero value, or true if that is the field's default.
func decode(doc []byte, generation string) (*Config, *decoder) {
	d := &decoder{
		doc: doc, dec: json.NewDecoder(bytes.NewReader(doc)), generation: generation,
		fields: map[reflect.Type]map[string]structField{}, signs: map[string]bool{},
	}
	d.dec.UseNumber()
	cfg := &Config{}
	root := reflect.ValueOf(cfg).Elem()
	d.preset(root)
	d.value("$", root, rule{notNull: true}, 0)
	return cfg, d
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
	if kind == reflect.Pointer {
		kind = to.Type().Elem().Kind()
	}
	if token == json.Delim('{') && (kind == reflect.Struct || kind == reflect.Map) {
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
		if outOfRange(t) {
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
	case reflect.Pointer:
		elem := reflect.New(to.Type().Elem())
		if scalar(elem.Elem(), r, v) {
			to.Set(elem)
			return true
		}
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

// integer returns v as an integer, which may be written as 1.0 or 1e3.
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
		d.preset(to)
	}
	isMap, known, given := to.Kind() == reflect.Map, d.fieldsOf(to.Type()), map[string]bool{}
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
		f, ok := known[name]
		d.signs[f.rule.only] = true
		if ok && !f.rule.foreign {
			d.value(at, to.Field(f.index), f.rule, depth+1)
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
		if f.rule.required && !f.rule.foreign && !given[name] {
			d.violate(field(path, name), "is required; must be %s", f.rule.allowed(to.Type().Field(f.index).Type))
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
	if !r.unique || len(d.violations) > before {
		return
	}
	first := map[any]int{}
	for i := range items.Len() {
		v := items.Index(i).Interface()
		if at, repeats := first[v]; repeats {
			d.violate(item(path, i), "must not repeat item %d", at)
			return
		}
		first[v] = i
	}
}

// unknown records a field that its object does not have.
func (d *decoder) unknown(at, name string, known map[string]structField, open bool) {
	if f, ok := known[name]; ok {
		d.foreign(at, f.rule.only, open)
		return
	}
	names := make([]string, 0, len(known))
	for name, f := range known {
		if !f.rule.foreign {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := ""
	if at == "$.consulLogin.extraLoginFlags" {
		text = ": removed in 0.6.0, because login no longer runs the consul command; use meta, region, stsEndpoint " +
			"and serverIdHeaderValue"
	}
	if near := Nearest(name, names); text == "" && near != "" {
		text = `; did you mean "` + near + `"?`
	}
	if open {
		d.warnings = append(d.warnings, Finding{at, "unknown field, ignored" + text})
	} else {
		d.violate(at, "unknown field%s; allowed: %s", text, strings.Join(names, ", "))
	}
}

// foreign records a field that the object has in the other generation only.
func (d *decoder) foreign(at, only string, open bool) {
	text := "belongs to a task with a Consul client agent (no consulServers); remove it"
	if only == agentless {
		text = "belongs to a task without a Consul client agent (with consulServers); remove it"
	}
	if open {
		d.warnings = append(d.warnings, Finding{at, "ignored: " + text})
	} else {
		d.violate(at, "%s", text)
	}
}
