package taskdef

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
)

// binder puts decoded JSON into the types and collects all that does not fit.
// encoding/json would stop at the first wrong type, match keys of any case and
// say nothing of unknown ones.
type binder struct {
	violations []Violation
	warnings   []Warning
}

// bind stores raw in v. null counts as absent, as in the ECS API.
func (b *binder) bind(v reflect.Value, raw any, path string) {
	if raw == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bind(v.Elem(), raw, path)
	case reflect.Struct:
		b.bindStruct(v, raw, path)
	case reflect.Slice:
		b.bindSlice(v, raw, path)
	case reflect.Map:
		b.bindMap(v, raw, path)
	case reflect.Interface:
		v.Set(reflect.ValueOf(raw))
	default:
		b.bindScalar(v, raw, path)
	}
}

func (b *binder) bindStruct(v reflect.Value, raw any, path string) {
	object, ok := raw.(map[string]any)
	if !ok {
		b.wrongType(path, "an object", raw)
		return
	}
	fields := fieldsByKey(v.Type())
	for _, key := range slices.Sorted(maps.Keys(object)) {
		index, known := fields[key]
		if !known {
			b.unknownKey(path, key, slices.Sorted(maps.Keys(fields)))
			continue
		}
		b.bind(v.Field(index), object[key], path+"."+key)
	}
}

// bindWrapper takes what stands beside "taskDefinition" in a describe answer.
func (b *binder) bindWrapper(d *TaskDefinition, outer map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(outer)) {
		switch key {
		case "taskDefinition":
		case "tags":
			b.bind(reflect.ValueOf(&d.Tags).Elem(), outer[key], "$.tags")
		default:
			b.unknownKey("$", key, []string{"tags", "taskDefinition"})
		}
	}
}

func (b *binder) bindSlice(v reflect.Value, raw any, path string) {
	list, ok := raw.([]any)
	if !ok {
		b.wrongType(path, "a list", raw)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item == nil {
			b.wrongType(at, describeType(out.Index(i).Kind()), nil)
			continue
		}
		b.bind(out.Index(i), item, at)
	}
	v.Set(out)
}

func (b *binder) bindMap(v reflect.Value, raw any, path string) {
	object, ok := raw.(map[string]any)
	if !ok {
		b.wrongType(path, "an object", raw)
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		item := reflect.New(v.Type().Elem()).Elem()
		b.bind(item, object[key], fmt.Sprintf("%s[%q]", path, key))
		out.SetMapIndex(reflect.ValueOf(key), item)
	}
	v.Set(out)
}

func (b *binder) bindScalar(v reflect.Value, raw any, path string) {
	switch value := raw.(type) {
	case string:
		if v.Kind() == reflect.String {
			v.SetString(value)
			return
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(value)
			return
		}
	case json.Number:
		// ECS integers are 32 bits wide, also ulimits.
		if n, err := strconv.ParseInt(value.String(), 10, 32); err == nil && v.Kind() == reflect.Int {
			v.SetInt(n)
			return
		}
	}
	b.wrongType(path, describeType(v.Kind()), raw)
}

func (b *binder) wrongType(path, want string, raw any) {
	got := "null"
	switch value := raw.(type) {
	case map[string]any:
		got = "an object"
	case []any:
		got = "a list"
	case string:
		got = "the string " + strconv.Quote(value)
	case bool:
		got = strconv.FormatBool(value)
	case json.Number:
		got = "the number " + value.String()
	}
	message := "must be " + want + ", but is " + got
	if path == "$" && got == "a list" {
		message += `; a list of containers goes into {"family": ..., "containerDefinitions": [...]}`
	}
	b.violations = append(b.violations,
		Violation{Code: CodeType, Severity: Error, Path: path, Message: message})
}

func (b *binder) unknownKey(path, key string, known []string) {
	message := "unknown key, ignored"
	if near := nearest.Key(key, known); near != "" {
		message += "; did you mean " + strconv.Quote(near) + "?"
	}
	b.warnings = append(b.warnings, Warning{Path: path + "." + key, Message: message})
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

// fieldsByKey maps the JSON keys of a struct to its field numbers.
func fieldsByKey(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[key] = i
	}
	return fields
}
