package admission

import (
	"cmp"
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

// unknownSetting completes the error of encoding/json about a member that admission of the mesh file
// does not have, with the one that was probably meant, or else all that it has.
func unknownSetting(message string) string {
	_, quoted, unknown := strings.Cut(message, "unknown field ")
	if !unknown {
		return message
	}
	name, _ := strconv.Unquote(quoted)
	var all []string
	for f := range reflect.TypeFor[settings]().Fields() {
		all = append(all, settingName(f))
	}
	// Members of sidecars have names such as image, which are near to others at the root.
	if near := cmp.Or(config.Nearest(name, all), config.Nearest(name, settingNames(reflect.TypeFor[settings]()))); near != "" {
		return fmt.Sprintf("unknown field %s; did you mean %q?", quoted, near)
	}
	slices.Sort(all)
	return fmt.Sprintf("unknown field %s; allowed at its root: %s", quoted, strings.Join(all, ", "))
}

// settingNames are the names of the members of a type, and of those below it.
func settingNames(typ reflect.Type) []string {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return settingNames(typ.Elem())
	case reflect.Struct:
		var names []string
		for f := range typ.Fields() {
			if f.IsExported() {
				names = append(names, settingName(f))
				names = append(names, settingNames(f.Type)...)
			}
		}
		return names
	}
	return nil
}

// settingName is the name of a member as the mesh file has it.
func settingName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" { // read by ParseMesh
		return strings.ToLower(f.Name[:1]) + f.Name[1:]
	}
	return name
}
