package parity

import (
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-config-inspect/tfconfig"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestSidecarsHaveTheSameMembers compares the Go type of the mesh file with the type of the
// variable: neither has a member that the other lacks.
func TestSidecarsHaveTheSameMembers(t *testing.T) {
	t.Parallel()
	module, diagnostics := tfconfig.LoadModule(filepath.Join(testkit.Root(), "terraform", "modules", "render"))
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics.Err())
	}
	rendered := members(module.Variables["sidecars"].Type)
	admitted := fields("", reflect.TypeFor[admission.Sidecar]())
	if len(admitted) < 30 {
		t.Errorf("%d members, want 30 or more", len(admitted))
	}
	for _, m := range admitted {
		if !slices.Contains(rendered, m) {
			t.Errorf("the variable sidecars lacks %s", m)
		}
	}
	for _, m := range rendered {
		if !slices.Contains(admitted, m) {
			t.Errorf("admission.Sidecar lacks %s", m)
		}
	}
}

// fields returns the members of a Go type with their types, those of objects below their names.
func fields(prefix string, of reflect.Type) []string {
	var all []string
	for i := range of.NumField() {
		name := prefix + snake(of.Field(i).Tag.Get("json"))
		name, _, _ = strings.Cut(name, ",")
		what, inner := kind(of.Field(i).Type)
		all = append(all, name+" "+what)
		if inner != nil {
			all = append(all, fields(name+".", inner)...)
		}
	}
	return all
}

// kind returns the name that Terraform has for a Go type, and the type of an object in it.
func kind(of reflect.Type) (name string, object reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer:
		return kind(of.Elem())
	case reflect.Slice:
		inner, object := kind(of.Elem())
		return "list(" + inner, object
	case reflect.Map:
		inner, object := kind(of.Elem())
		return "map(" + inner, object
	case reflect.Struct:
		return "object(", of
	case reflect.Int:
		return "number", nil
	case reflect.Bool:
		return "bool", nil
	}
	return of.Kind().String(), nil
}

// members returns the same of a type expression of Terraform.
func members(expression string) []string {
	var all, path []string
	words := regexp.MustCompile(`(\w+)\s*=\s*(?:optional\()?((?:list\(|map\(|object\()*(?:string|number|bool)?)|[{}]`)
	for _, m := range words.FindAllStringSubmatch(expression, -1) {
		switch {
		case m[0] == "{":
			path = append(path, "")
		case m[0] == "}":
			path = path[:len(path)-1]
		default:
			name := snake(m[1])
			path[len(path)-1] = name
			all = append(all, strings.Join(path, ".")+" "+m[2])
		}
	}
	return all
}
