package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// decode puts a body into an input. Members that it does not have are ignored,
// those of another case too: AWS knows exact names only, encoding/json does not.
func decode(body []byte, in any) error {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	if _, own := in.(json.Unmarshaler); !own {
		var tree any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil || d.More() {
			return serialization("The request is not valid JSON.")
		}
		prune(tree, reflect.TypeOf(in).Elem())
		body, _ = json.Marshal(tree) // cannot fail: it has come out of JSON
	}
	err := json.Unmarshal(body, in)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return serialization(conversion(wrong))
	}
	if _, ok := errors.AsType[*shapes.Error](err); err != nil && !ok {
		return serialization(err.Error())
	}
	return err
}

func serialization(message string) error {
	return shapes.Errorf("SerializationException", "%s", message)
}

func conversion(e *json.UnmarshalTypeError) string {
	at := ""
	if e.Field != "" {
		at = " at " + member(e.Field)
	}
	value, _, _ := strings.Cut(e.Value, " ") // "number 1.5"
	switch value {
	case "object":
		return "Start of structure or map found where not expected" + at + "."
	case "array":
		return "Start of list found where not expected" + at + "."
	case "bool":
		value = "boolean"
	}
	switch e.Type.Kind() {
	case reflect.String:
		return fmt.Sprintf("%s_VALUE can not be converted to a String%s", strings.ToUpper(value), at)
	case reflect.Bool:
		return fmt.Sprintf("%s_VALUE can not be converted to a Boolean%s", strings.ToUpper(value), at)
	case reflect.Int:
		return fmt.Sprintf("%s_VALUE can not be converted to an Integer%s", strings.ToUpper(value), at)
	}
	return "Unexpected field type" + at
}

// member returns a member's place without embedded structs and the indices of lists: AWS's
// names begin with small letters.
func member(path string) string {
	parts := slices.DeleteFunc(strings.Split(path, "."), func(part string) bool {
		return part != "" && !unicode.IsLower(rune(part[0]))
	})
	return strings.Join(parts, ".")
}

func prune(tree any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch node := tree.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for _, item := range node {
				prune(item, t.Elem())
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		known := members(t)
		for name, value := range node {
			if member, ok := known[name]; ok {
				prune(value, member)
			} else {
				delete(node, name)
			}
		}
	}
}

func members(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous {
			known[name] = f.Type
			continue
		}
		for name, member := range members(f.Type) {
			known[name] = member
		}
	}
	return known
}
