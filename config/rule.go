package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rule is the check tag of a field, a list of these, separated by commas:
//
//	required   the field must be there, and null is not allowed
//	notnull    null is not allowed; otherwise it means that the field is absent
//	open       unknown fields of the object, or of the list's objects, are ignored
//	unique     the list has no item twice
//	range=a-b  the integer's limits
//	enum=a|b   the texts that are allowed
//	only=a     the field belongs to the generation a, agent or agentless, alone
//	default=true  the truth value is true when the field is absent or null
//
// Any other word is the name of a format, see formatOf. Formats, enums and ranges
// hold for the values of a list or of a map. With a generation before it, as in
// agent:open, a rule holds in documents of that generation alone.
type rule struct {
	required, notNull, open, unique, defaultTrue bool
	min, max                                     int64
	enum                                         []string
	format                                       string
	// only is the generation that has the field, or empty for both; foreign is set
	// when it is not the document's.
	only    string
	foreign bool
}

// structField is a field of a struct that a document sets, with its rule.
type structField struct {
	index int
	rule  rule
}

// fieldsOf returns the fields of a struct by their names in a document, nil for another type.
func (d *decoder) fieldsOf(typ reflect.Type) map[string]structField {
	fields, known := d.fields[typ]
	if known || typ.Kind() != reflect.Struct {
		return fields
	}
	fields = map[string]structField{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if name := f.Tag.Get("json"); name != "-" {
			fields[name] = structField{i, readRule(f.Tag.Get("check"), d.generation)}
		}
	}
	d.fields[typ] = fields
	return fields
}

// preset makes the truth values of a struct, and of those in it, true that are so
// when a document does not have them.
func (d *decoder) preset(v reflect.Value) {
	for _, f := range d.fieldsOf(v.Type()) {
		switch {
		case f.rule.foreign:
		case f.rule.defaultTrue:
			v.Field(f.index).SetBool(true)
		default:
			d.preset(v.Field(f.index))
		}
	}
}

// elem returns the rule of the values of a list or of a map.
func (r rule) elem() rule {
	return rule{notNull: true, open: r.open, min: r.min, max: r.max, enum: r.enum, format: r.format}
}

// readRule returns the rule that a tag states for a generation.
func readRule(tag, generation string) rule {
	var r rule
	for option := range strings.SplitSeq(tag, ",") {
		if in, held, ok := strings.Cut(option, ":"); ok {
			if in != generation {
				continue
			}
			option = held
		}
		switch name, value, _ := strings.Cut(option, "="); name {
		case "required":
			r.required, r.notNull = true, true
		case "notnull":
			r.notNull = true
		case "open":
			r.open = true
		case "unique":
			r.unique = true
		case "range":
			low, high, _ := strings.Cut(value, "-")
			r.min, _ = strconv.ParseInt(low, 10, 64)
			r.max, _ = strconv.ParseInt(high, 10, 64)
		case "only":
			r.only, r.foreign = value, value != generation
		case "default":
			r.defaultTrue = value == "true"
		case "enum":
			r.enum = strings.Split(value, "|")
		default:
			r.format = name
		}
	}
	return r
}

// formatOf returns what a text of that format is, in words, and its check.
func formatOf(name string) (allowed string, admits func(string) bool) {
	switch name {
	case "nonempty":
		return "a string that is not empty", func(s string) bool { return s != "" }
	case "name":
		return `empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or digit`,
			func(s string) bool { return s == "" || ValidName(s) }
	case "duration":
		return `a duration such as "10s" or "1m30s"`, func(s string) bool {
			_, err := time.ParseDuration(s) // as Consul does
			return s == "" || err == nil && s[0] != '-'
		}
	case "probe":
		return `"tcp" or a path that begins with "/"`,
			func(s string) bool { return s == "tcp" || strings.HasPrefix(s, "/") }
	case "protocol":
		return `"http" or "http2"`,
			func(s string) bool { return s == "" || strings.EqualFold(s, "http") || strings.EqualFold(s, "http2") }
	case "":
		return "a string", func(string) bool { return true }
	}
	panic(fmt.Sprintf("a check tag has the unknown format %q", name))
}

// admits reports whether the text may stand there.
func (r rule) admits(text string) bool {
	_, admits := formatOf(r.format)
	return admits(text) && (r.enum == nil || slices.Contains(r.enum, text))
}

// ValidName reports whether Consul takes the name for a service: a-z, 0-9, "-"
// and "_", with a letter or digit at both ends.
func ValidName(name string) bool {
	for i, r := range name {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
		case (r == '-' || r == '_') && i > 0 && i < len(name)-1:
		default:
			return false
		}
	}
	return name != ""
}

// allowed describes the values that a field of this type takes.
func (r rule) allowed(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Pointer:
		return r.allowed(typ.Elem())
	case reflect.String:
		if len(r.enum) == 1 {
			return r.enum[0]
		} else if r.enum != nil {
			return "one of " + strings.Join(r.enum, ", ")
		}
		text, _ := formatOf(r.format)
		return text
	case reflect.Int:
		return fmt.Sprintf("an integer from %d to %d", r.min, r.max)
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		switch typ.Elem().Kind() {
		case reflect.String:
			return "a list of strings"
		case reflect.Int:
			return "a list of integers"
		}
		return "a list of objects"
	case reflect.Map:
		if elem := typ.Elem(); elem.Kind() != reflect.Interface {
			return "an object whose values are each " + r.elem().allowed(elem)
		}
	}
	return "an object"
}

// got shows the offending value. Only short scalars where the field takes a
// scalar of that kind are shown themselves; the rest may hold a secret.
func (r rule) got(v any) string {
	switch v := v.(type) {
	case string:
		if (r.enum != nil || r.format != "") && len(v) <= 60 {
			return strconv.Quote(v)
		}
	case json.Number:
		if r.max > 0 {
			return v.String()
		}
	}
	return kindOf(v)
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
