package taskdef

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// binder puts a document into the types and collects all that does not fit.
// encoding/json would stop at the first wrong type, match keys of any case and
// not report unknown ones. Paths are those of the ECS API.
type binder struct {
	// template is set for CloudFormation: other keys, values that it computes,
	// numbers and booleans that may be strings and the reverse.
	template bool
	// locate turns a path into that of the document.
	locate     func(path string) string
	violations []Violation
	warnings   []Warning
	// written and unknown are those of a subject.
	written map[string]string
	unknown []string
}

// bind stores n in v. null counts as absent, as in the ECS API.
func (b *binder) bind(v reflect.Value, n *Node, path string) {
	if n == nil || n.IsNull() || b.template && b.computed(n, path) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bind(v.Elem(), n, path)
	case reflect.Struct:
		b.bindStruct(v, n, path)
	case reflect.Slice:
		b.bindSlice(v, n, path)
	case reflect.Map:
		b.bindMap(v, n, path)
	case reflect.Interface:
		v.Set(reflect.ValueOf(n.value()))
	default:
		b.bindScalar(v, n, path)
	}
}

// computed reports whether CloudFormation computes the value. Such a value is
// unknown, except that AWS::NoValue is absent.
func (b *binder) computed(n *Node, path string) bool {
	function := slices.ContainsFunc(n.members, func(m member) bool { return strings.HasPrefix(m.key, "Fn::") })
	if !function && (len(n.members) != 1 || n.members[0].key != "Ref") {
		return false
	}
	if ref := n.Get("Ref"); ref == nil || ref.scalar != `"AWS::NoValue"` {
		b.unknown = append(b.unknown, strings.TrimPrefix(path, "$."))
	}
	return true
}

func (b *binder) bindStruct(v reflect.Value, n *Node, path string) {
	if !n.IsObject() {
		b.wrongType(path, "an object", n)
		return
	}
	fields := fieldsByKey(v.Type(), b.template)
	members := slices.Clone(n.members)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for _, m := range members {
		f, known := fields[m.key]
		if !known {
			b.warnings = append(b.warnings, unknownKey(b.locate(path), m.key, slices.Sorted(maps.Keys(fields))))
			continue
		}
		b.bind(v.Field(f.index), m.value, path+"."+f.key)
	}
}

func (b *binder) bindSlice(v reflect.Value, n *Node, path string) {
	if !n.list {
		b.wrongType(path, "a list", n)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.IsNull() {
			b.wrongType(at, describeType(out.Index(i).Kind()), item)
			continue
		}
		b.bind(out.Index(i), item, at)
	}
	v.Set(out)
}

func (b *binder) bindMap(v reflect.Value, n *Node, path string) {
	if !n.IsObject() {
		b.wrongType(path, "an object", n)
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.members))
	for _, key := range slices.Sorted(slices.Values(n.Keys())) {
		item := reflect.New(v.Type().Elem()).Elem()
		b.bind(item, n.Get(key), fmt.Sprintf("%s[%q]", path, key))
		out.SetMapIndex(reflect.ValueOf(key), item)
	}
	v.Set(out)
}

func (b *binder) bindScalar(v reflect.Value, n *Node, path string) {
	if text, is := n.Text(); is && v.Kind() == reflect.String {
		v.SetString(text)
		b.written[strings.TrimPrefix(path, "$.")] = text
		return
	}
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
			v.SetString(value)
			b.written[strings.TrimPrefix(path, "$.")] = value
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
			return
		}
	}
	b.wrongType(path, describeType(v.Kind()), n)
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

func (b *binder) wrongType(path, want string, n *Node) {
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
	if path == "$" && got == "a list" {
		message += `; a list of containers goes into {"family": ..., "containerDefinitions": [...]}`
	}
	b.violations = append(b.violations,
		Violation{Code: CodeType, Severity: Error, Path: b.locate(path), Message: message})
}

func unknownKey(path, key string, known []string) Warning {
	message := "unknown key, ignored"
	if near := nearest.Key(key, known); near != "" {
		message += "; did you mean " + strconv.Quote(near) + "?"
	}
	return Warning{Path: path + "." + key, Message: message}
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

// field is a member of a struct: its number and its key in the ECS API.
type field struct {
	index int
	key   string
}

type fieldTable struct {
	of       reflect.Type
	template bool
}

// fieldTables has what fieldsByKey has returned, by fieldTable.
var fieldTables sync.Map

// fieldsByKey maps the keys of a struct, as they are written, to its fields.
func fieldsByKey(t reflect.Type, template bool) map[string]field {
	if known, ok := fieldTables.Load(fieldTable{t, template}); ok {
		return known.(map[string]field)
	}
	fields := make(map[string]field, t.NumField())
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		written := key
		if template {
			written = templateKey(key)
		}
		fields[written] = field{i, key}
	}
	fieldTables.Store(fieldTable{t, template}, fields)
	return fields
}
