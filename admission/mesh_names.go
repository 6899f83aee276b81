package admission

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// meshMember is the member of a mesh file that no configuration has.
const meshMember = "admission"

// checkMeshNames finds a member of the mesh file that is nearly admission. The others are those of
// the configuration, which config checks.
func checkMeshNames(root *taskdef.Node) error {
	for _, name := range root.Keys() {
		if name != meshMember && config.Nearest(name, []string{meshMember}) != "" {
			return fmt.Errorf("the mesh file has the unknown member %s; did you mean %q?", strconv.Quote(name), meshMember)
		}
	}
	return nil
}

// checkSettings reports the first value of the mesh file that its type does not take, by its path:
// a member that the type does not have, with the one that was probably meant or else all of them, or
// another type of JSON.
func checkSettings(n *taskdef.Node, typ reflect.Type, at string) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch pointer := reflect.PointerTo(typ); {
	case n.IsNull() || pointer.Implements(reflect.TypeFor[json.Unmarshaler]()): // which reports its faults itself
		return nil
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return checkSetting(n, typ, "a string", at)
	}
	switch typ.Kind() {
	case reflect.Struct:
		return checkFields(n, typ, at)
	case reflect.Map:
		return checkAll(n, n.IsObject(), typ, "an object", at)
	case reflect.Slice:
		return checkAll(n, n.IsList(), typ, "a list", at)
	case reflect.Bool:
		return checkSetting(n, typ, "true or false", at)
	case reflect.Int:
		return checkSetting(n, reflect.TypeFor[int32](), "an integer", at) // as ECS has them
	}
	return checkSetting(n, typ, "a string", at)
}

// checkFields is checkSettings for a type with members.
func checkFields(n *taskdef.Node, typ reflect.Type, at string) error {
	if !n.IsObject() {
		return wrongSetting(n, "an object", at)
	}
	fields, names := map[string]reflect.Type{}, []string(nil)
	for f := range typ.Fields() {
		fields[strings.ToLower(settingName(f))] = f.Type
		names = append(names, settingName(f))
	}
	slices.Sort(names)
	for _, key := range n.Keys() {
		field, known := fields[strings.ToLower(key)] // as encoding/json compares them
		if !known {
			hint := "allowed: " + strings.Join(names, ", ")
			if near := config.Nearest(key, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return fmt.Errorf("the member %s of the mesh file: unknown field %s; %s", at, strconv.Quote(key), hint)
		}
		if err := checkSettings(n.Get(key), field, at+"."+key); err != nil {
			return err
		}
	}
	return nil
}

// checkAll is checkSettings for the values of an object or the items of a list, if it is one.
func checkAll(n *taskdef.Node, is bool, typ reflect.Type, want, at string) error {
	if !is {
		return wrongSetting(n, want, at)
	}
	for _, key := range n.Keys() {
		if err := checkSettings(n.Get(key), typ.Elem(), at+"."+key); err != nil {
			return err
		}
	}
	for i, item := range n.Items() {
		if err := checkSettings(item, typ.Elem(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

// checkSetting is checkSettings for a single value.
func checkSetting(n *taskdef.Node, typ reflect.Type, want, at string) error {
	if json.Unmarshal(n.JSON(), reflect.New(typ).Interface()) != nil {
		return wrongSetting(n, want, at)
	}
	return nil
}

// wrongSetting returns the error about a value of the mesh file that has another type.
func wrongSetting(n *taskdef.Node, want, at string) error {
	_, text := n.Text()
	is := "JSON number " + string(n.JSON())
	switch {
	case n.IsObject():
		is = "JSON object"
	case n.IsList():
		is = "JSON array"
	case text:
		is = "JSON string"
	case strings.Trim(string(n.JSON()), "aeflrstu") == "":
		is = "JSON bool"
	}
	return fmt.Errorf("the member %s of the mesh file: must be %s, but is a %s", at, want, is)
}

// settingName returns the name of a member as the mesh file has it.
func settingName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" { // read by ParseMesh
		return strings.ToLower(f.Name[:1]) + f.Name[1:]
	}
	return name
}
