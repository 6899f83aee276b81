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

// checkMeshNames finds a member of the mesh file that is nearly admission, or belongs below it. The
// others are those of the configuration, which config checks.
func checkMeshNames(root *taskdef.Node) error {
	for _, name := range root.Keys() {
		locations := locationsOf(name)
		switch {
		case name == meshMember || slices.Contains(locations, rootLocation):
		case config.Nearest(name, []string{meshMember}) != "":
			return fmt.Errorf("the mesh file has the unknown member %s; did you mean %q?",
				strconv.Quote(name), meshMember)
		case len(locations) > 0:
			return fmt.Errorf("the mesh file has the unknown member %s; its place is %s", strconv.Quote(name),
				strings.Join(locations, " or "))
		}
	}
	return nil
}

// rootLocation is the location of the members of the configuration.
const rootLocation = "the root of the file"

// locationsOf returns where the mesh file has members of a name: at its root, or the paths of those of
// admission and of what that has, unless they depend on a role.
func locationsOf(name string) []string {
	var locations []string
	same := func(known string) bool { return strings.EqualFold(known, name) }
	if slices.ContainsFunc(settingNames(reflect.TypeFor[config.Config]()), same) {
		locations = append(locations, rootLocation)
	}
	look := func(within string, names []string) {
		if i := slices.IndexFunc(names, same); i >= 0 {
			locations = append(locations, within+names[i])
		}
	}
	look(meshMember+".", settingNames(reflect.TypeFor[settings]()))
	look(meshMember+".images.", settingNames(reflect.TypeFor[images]()))
	look(meshMember+".client.", settingNames(reflect.TypeFor[client]()))
	look(meshMember+".sidecars.", sidecarRoles)
	return locations
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

// checkFields checks the members of an object.
func checkFields(n *taskdef.Node, typ reflect.Type, at string) error {
	if !n.IsObject() {
		return wrongSetting(n, "an object", at)
	}
	fields := map[string]reflect.Type{}
	for f := range typ.Fields() {
		fields[strings.ToLower(settingName(f))] = f.Type
	}
	for _, key := range n.Keys() {
		field, known := fields[strings.ToLower(key)] // as encoding/json compares them
		if !known {
			names, locations := settingNames(typ), locationsOf(key)
			hint := "allowed: " + strings.Join(names, ", ")
			if near := config.Nearest(key, names); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			} else if len(locations) > 0 {
				hint = "its place is " + strings.Join(locations, " or ")
			}
			return fmt.Errorf("the member %s of the mesh file: unknown field %s; %s", at, strconv.Quote(key), hint)
		}
		if err := checkSettings(n.Get(key), field, at+"."+key); err != nil {
			return err
		}
	}
	return nil
}

// checkAll checks the values of an object or the items of a list, if it is one.
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

// checkSetting checks a single value.
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
	hint := ""
	if strings.HasPrefix(at, meshMember+".images.") && n.IsObject() {
		hint = "; for tasks of both architectures name an index of both images, or take a mesh file for each"
	}
	return fmt.Errorf("the member %s of the mesh file: must be %s, but is a %s%s", at, want, is, hint)
}

// settingNames returns the names of the members of a type as the mesh file has them, sorted.
func settingNames(typ reflect.Type) []string {
	var names []string
	for f := range typ.Fields() {
		names = append(names, settingName(f))
	}
	slices.Sort(names)
	return names
}

// settingName returns the name of a member as the mesh file has it.
func settingName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" { // read by ParseMesh
		return strings.ToLower(f.Name[:1]) + f.Name[1:]
	}
	return name
}
