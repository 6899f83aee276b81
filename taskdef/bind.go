package taskdef

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/config"
)

// binder puts a document into the types and collects all that does not fit.
// encoding/json would stop at the first wrong type, match keys of any case and
// not report unknown ones. Paths are those of the ECS API.
type binder struct {
	// template is set for CloudFormation: other keys, values that it computes,
	// numbers and booleans that may be strings and the reverse.
	template bool
	// rendered is set for a file of Terraform's templatefile, in which "${" begins a value that
	// it computes. It is unknown, except that labels are judged as annotations.
	rendered bool
	// locate turns a path into that of the document.
	locate func(path string) string
	// path is that of the value that is bound, such as .containerDefinitions[0].
	path []byte
	// fields are those of the last struct, whose type is of.
	of         reflect.Type
	fields     *fields
	violations []Violation
	warnings   []Warning
	// written, unknown and faults are those of a subject.
	written map[string]string
	unknown []string
	faults  []fault
}

// at returns the path as a rule has it.
func (b *binder) at() string { return strings.TrimPrefix(string(b.path), ".") }

// bind stores n in v. null counts as absent, as in the ECS API.
func (b *binder) bind(v reflect.Value, n *Node, f field) {
	if n == nil || n.IsNull() || b.template && b.computed(n) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bind(v.Elem(), n, f)
	case reflect.Struct:
		b.bindStruct(v, n)
	case reflect.Slice:
		b.bindSlice(v, n, f)
	case reflect.Map:
		b.bindMap(v, n)
	case reflect.Interface:
		v.Set(reflect.ValueOf(n.value()))
	default:
		b.bindScalar(v, n, f)
	}
}

// computed reports whether CloudFormation computes the value. Such a value is
// unknown, except that AWS::NoValue is absent.
func (b *binder) computed(n *Node) bool {
	if !n.IsComputed() {
		return false
	}
	if ref := n.Get("Ref"); ref == nil || ref.scalar != `"AWS::NoValue"` {
		b.unknown = append(b.unknown, b.at())
	}
	return true
}

func (b *binder) bindStruct(v reflect.Value, n *Node) {
	if !n.IsObject() {
		b.wrongType("an object", n)
		return
	}
	if b.of != v.Type() { // the elements of a list have the same one
		b.of, b.fields = v.Type(), fieldsOf(v.Type(), b.template)
	}
	fields, base := b.fields, len(b.path)
	for _, m := range n.members {
		f, known := fields.byKey[m.key]
		if !known {
			b.warnings = append(b.warnings,
				unknownKey(b.locate(string(b.path[:base])), m.key, slices.Sorted(maps.Keys(fields.byKey))))
			continue
		}
		b.path = append(append(b.path[:base], '.'), f.key...)
		b.bind(v.Field(f.index), m.value, f)
	}
	for _, f := range fields.required {
		if value := n.Get(f.written); value == nil || value.IsNull() {
			b.path = append(append(b.path[:base], '.'), f.key...)
			b.faults = append(b.faults, fault{code: codeRequired, path: b.at(), values: []any{f.key}})
		}
	}
	b.path = b.path[:base]
}

func (b *binder) bindSlice(v reflect.Value, n *Node, f field) {
	if !n.list {
		b.wrongType("a list", n)
		return
	}
	out, base := reflect.MakeSlice(v.Type(), len(n.items), len(n.items)), len(b.path)
	for i, item := range n.items {
		b.path = append(strconv.AppendInt(append(b.path[:base], '['), int64(i), 10), ']')
		if item.IsNull() {
			b.wrongType(describeType(out.Index(i).Kind()), item)
			continue
		}
		b.bind(out.Index(i), item, f)
	}
	b.path = b.path[:base]
	v.Set(out)
}

// bindMap stores an object of texts.
func (b *binder) bindMap(v reflect.Value, n *Node) {
	if !n.IsObject() {
		b.wrongType("an object", n)
		return
	}
	out, base := make(map[string]string, len(n.members)), len(b.path)
	for _, m := range n.members {
		var text string
		b.path = append(strconv.AppendQuote(append(b.path[:base], '['), m.key), ']')
		b.bind(reflect.ValueOf(&text).Elem(), m.value, field{})
		out[m.key] = text
	}
	b.path = b.path[:base]
	v.Set(reflect.ValueOf(out))
}

func (b *binder) bindScalar(v reflect.Value, n *Node, f field) {
	var value any
	if n.scalar != "" {
		value = n.value()
	}
	if b.template {
		value = convert(v.Kind(), value)
	}
	switch value := value.(type) {
	case string:
		if v.Kind() == reflect.String {
			b.bindText(v, value, f)
			return
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(value)
			return
		}
	case json.Number:
		// ECS integers are 32 bits wide, also ulimits.
		if i, err := strconv.ParseInt(value.String(), 10, 32); err == nil && v.Kind() == reflect.Int {
			v.SetInt(i)
			if f.high > 0 && (int(i) < f.low || int(i) > f.high) {
				b.faults = append(b.faults, fault{code: codeRange, path: b.at(), values: []any{f.key, f.low, f.high}})
			}
			return
		}
	}
	b.wrongType(describeType(v.Kind()), n)
}

// bindText stores a text, and keeps what defaults would hide.
func (b *binder) bindText(v reflect.Value, text string, f field) {
	v.SetString(text)
	if b.rendered && strings.Contains(text, "${") && !strings.Contains(b.at(), ".dockerLabels[") {
		b.unknown = append(b.unknown, b.at())
		return
	}
	if text == "" || f.key == "protocol" {
		b.written[b.at()] = text
	}
	if f.enum != nil && text != "" && !slices.Contains(f.enum, text) {
		b.faults = append(b.faults, fault{code: codeEnum, path: b.at(),
			values: []any{text, strings.Join(f.enum, ", ")}})
	}
}

// sort orders what was found by the paths: the document's order does not count.
func (b *binder) sort() {
	slices.SortStableFunc(b.violations, func(one, other Violation) int { return ComparePaths(one.Path, other.Path) })
	slices.SortStableFunc(b.warnings, func(one, other Warning) int { return ComparePaths(one.Path, other.Path) })
	slices.SortStableFunc(b.faults, func(one, other fault) int { return ComparePaths(one.path, other.path) })
	slices.SortStableFunc(b.unknown, ComparePaths)
}

// ComparePaths orders paths by their keys and indexes, numbers as such.
func ComparePaths(one, other string) int {
	return slices.CompareFunc(steps(one), steps(other), func(a, b string) int {
		i, err := strconv.Atoi(a)
		j, otherErr := strconv.Atoi(b)
		if err == nil && otherErr == nil {
			return i - j
		}
		return strings.Compare(a, b)
	})
}

// convert does what CloudFormation does: it takes "80" for 80, "true" for true,
// and the reverse.
func convert(kind reflect.Kind, value any) any {
	text, isText := value.(string)
	switch {
	case kind == reflect.Int && isText:
		return json.Number(text)
	case kind == reflect.Bool && (text == "true" || text == "false"):
		return text == "true"
	case kind == reflect.String && !isText && value != nil:
		return fmt.Sprint(value)
	}
	return value
}

func (b *binder) wrongType(want string, n *Node) {
	got := "null"
	switch {
	case n == nil || n.IsNull():
	case n.IsObject():
		got = "an object"
	case n.list:
		got = "a list"
	case strings.HasPrefix(n.scalar, `"`):
		got = "the string " + strconv.Quote(n.value().(string))
	case n.scalar == "true" || n.scalar == "false":
		got = n.scalar
	default:
		got = "the number " + n.scalar
	}
	message := "must be " + want + ", but is " + got
	if len(b.path) == 0 && got == "a list" {
		message += `; a list of containers goes into {"family": ..., "containerDefinitions": [...]}`
	}
	b.violations = append(b.violations,
		Violation{Code: CodeType, Severity: Error, Path: b.locate(string(b.path)), Message: message})
	b.unknown = append(b.unknown, b.at()) // so that the rules judge the rest
}

func unknownKey(path, key string, known []string) Warning {
	near := config.Nearest(key, known)
	if near == "" {
		return Warning{Path: path + "." + key, Message: "key not known to this version, kept"}
	}
	return Warning{Path: path + "." + key, Message: "unknown key; did you mean " + strconv.Quote(near) + "?",
		Near: near}
}

func describeType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "an integer"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

// field is a member of a struct: its number, its key in the ECS API and in the
// document, and the limits that its tag ecs states:
//
//	required    the member must be there
//	enum=a|b    the texts that are allowed
//	range=a-b   the limits of an integer
//
// The tag cfn is its key in templates where that is not templateKey's.
type field struct {
	index        int
	key, written string
	// omitted is set when the member is left out for the zero value.
	omitted, required bool
	enum              []string
	low, high         int
}

// fields are those of a type.
type fields struct {
	byKey         map[string]field
	all, required []field
}

type fieldTable struct {
	of       reflect.Type
	template bool
}

// fieldTables has what fieldsOf has returned, by fieldTable.
var fieldTables sync.Map

// fieldsOf returns the fields of a struct, by the keys as they are written.
func fieldsOf(t reflect.Type, template bool) *fields {
	if known, ok := fieldTables.Load(fieldTable{t, template}); ok {
		return known.(*fields)
	}
	table := &fields{byKey: make(map[string]field, t.NumField())}
	for i := range t.NumField() {
		f := newField(i, t.Field(i).Tag)
		if template {
			f.written = cmp.Or(t.Field(i).Tag.Get("cfn"), templateKey(f.key))
		}
		table.byKey[f.written] = f
		table.all = append(table.all, f)
		if f.required {
			table.required = append(table.required, f)
		}
	}
	fieldTables.Store(fieldTable{t, template}, table)
	return table
}

func newField(index int, tag reflect.StructTag) field {
	key, option, _ := strings.Cut(tag.Get("json"), ",")
	f := field{index: index, key: key, written: key, omitted: option == "omitzero"}
	for limit := range strings.SplitSeq(tag.Get("ecs"), ",") {
		switch name, value, _ := strings.Cut(limit, "="); name {
		case "required":
			f.required = true
		case "enum":
			f.enum = strings.Split(value, "|")
		case "range":
			low, high, _ := strings.Cut(value, "-")
			f.low, _ = strconv.Atoi(low)
			f.high, _ = strconv.Atoi(high)
		}
	}
	return f
}
