package file_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// node is a piece of the schema; encoding/json sorts its keys.
type node = map[string]any

// writer makes the schema of types.
type writer struct {
	t *testing.T
	// docs are the comments of types and, as Type.Field, of their fields.
	docs map[string]string
	defs node
	made map[string]reflect.Type
}

func newWriter(t *testing.T) *writer {
	t.Helper()
	w := &writer{t: t, docs: map[string]string{}, defs: node{}, made: map[string]reflect.Type{}}
	for _, dir := range []string{"localecs/ecs/shapes", "localecs/chaos", "localecs/ecs/controlplane",
		"localecs/scenario/file"} {
		w.readDocs(dir)
	}
	return w
}

// readDocs takes the comments out of a package's files.
func (w *writer) readDocs(dir string) {
	paths, _ := filepath.Glob(filepath.Join(testkit.Root(), dir, "*.go"))
	for _, path := range paths {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, s := range types.Specs {
				spec := s.(*ast.TypeSpec)
				w.docs[spec.Name.Name] = line(types.Doc)
				if fields, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							w.docs[spec.Name.Name+"."+name.Name] = line(f.Doc)
						}
					}
				}
			}
		}
	}
}

func line(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

func (w *writer) document() node {
	root := w.object(reflect.TypeFor[file.Scenario]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A scenario of localecs"
	root["$defs"] = w.defs
	return root
}

// of returns the schema of a type.
func (w *writer) of(t reflect.Type) node {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return node{
			"anyOf": []node{{"type": "string", "pattern": `^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`},
				{"const": 0}},
		}
	case reflect.TypeFor[any]():
		return node{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem())
	case reflect.String:
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Int:
		return node{"type": "integer"}
	case reflect.Uint64:
		return node{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return node{"type": "number"}
	case reflect.Slice:
		return node{"type": "array", "items": w.of(t.Elem())}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Struct:
		return w.ref(t)
	}
	w.t.Fatalf("%s: no schema for this type", t)
	return nil
}

// ref refers to a struct, which is described once.
func (w *writer) ref(t reflect.Type) node {
	name := t.Name()
	if other, made := w.made[name]; made && other != t {
		w.t.Fatalf("%s and %s have one name", t, other)
	}
	if _, made := w.made[name]; !made {
		w.made[name] = t
		w.defs[name] = w.short(t, w.object(t))
	}
	return node{"$ref": "#/$defs/" + name}
}

// short adds the short form of a type that has one.
func (w *writer) short(t reflect.Type, long node) node {
	switch t {
	case reflect.TypeFor[file.Task](), reflect.TypeFor[file.Secret]():
		return node{"anyOf": []node{{"type": "string"}, long}}
	case reflect.TypeFor[file.Stop]():
		return node{"anyOf": []node{{"type": "array", "items": node{"type": "string"}}, long}}
	case reflect.TypeFor[file.Programs]():
		return node{"description": w.docs["Programs"], "anyOf": []node{{"type": "string"},
			{"type": "array", "items": node{"type": "string"}}, w.of(reflect.TypeFor[map[string]string]())}}
	case reflect.TypeFor[file.EndTraffic]():
		return node{"anyOf": []node{{"const": true}, long}}
	}
	return long
}

// object describes a struct.
func (w *writer) object(t reflect.Type) node {
	properties := node{}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "-" {
			continue
		}
		property := w.of(f.Type)
		for keyword, value := range limits()[t.Name()+"."+key] {
			property[keyword] = value
		}
		if doc := w.docs[t.Name()+"."+f.Name]; doc != "" {
			property["description"] = doc
		}
		properties[key] = property
	}
	o := node{"type": "object", "additionalProperties": false, "properties": properties}
	if doc := w.docs[t.Name()]; doc != "" {
		o["description"] = doc
	}
	if keys := required()[t.Name()]; keys != nil {
		o["required"] = keys
	}
	if also, is := kinds()[t]; is {
		o["oneOf"] = oneOf(properties, also)
	}
	return o
}

// oneOf wants exactly one of all keys but those that may be with any.
func oneOf(properties node, also string) []node {
	var one []node
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !strings.Contains(" "+also+" ", " "+key+" ") {
			one = append(one, node{"required": []string{key}})
		}
	}
	return one
}

// kinds returns the types of which one key is wanted besides others.
func kinds() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[file.Step]():      "at",
		reflect.TypeFor[chaos.Fault]():    "at for",
		reflect.TypeFor[chaos.Endpoint](): "name task share",
	}
}

func required() map[string][]string {
	return map[string][]string{
		"Scenario": {"name"}, "Secret": {"file"}, "Await": {"within"}, "Kill": {"task"},
		"Process":          {"task", "container"},
		"Endpoint":         {"name"},
		"SpotInterruption": {"task"}, "Partition": {"task", "from"}, "Link": {"task", "kbits"},
	}
}

// limits returns what values may be, beyond their type.
func limits() map[string]node {
	return map[string]node{
		"Scenario.stopOrder": {"enum": []string{file.StopReverse, file.StopAtOnce}},
		"Await.status":       {"enum": []string{"passing", "warning", "critical"}},
		"Fault.server":       {"enum": []string{chaos.Down, chaos.Frozen, chaos.Slowed}},
		"Endpoint.name": {"enum": []string{chaos.Metadata, chaos.Credentials, chaos.Protection, chaos.STS,
			chaos.IAM, chaos.ECS}},
		"Endpoint.status": {"enum": []int{429, 500, 503}},
		"Endpoint.wrong":  {"enum": []string{chaos.Empty, chaos.Truncated, chaos.Page, chaos.Error}},
		"Endpoint.share":  {"minimum": 0, "maximum": 1},
		"Link.kbits":      {"minimum": 8},
	}
}
