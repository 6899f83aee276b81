package taskdef

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// shape is a type of botocore's model of the ECS API.
type shape struct {
	Type     string
	Required []string
	Members  map[string]struct{ Shape string }
	Member   struct{ Shape string }
	Value    struct{ Shape string }
	Enum     []string
	Min, Max *float64 // some are written as 100.0
	Pattern  string
}

type model map[string]shape

func readModel(t *testing.T) model {
	t.Helper()
	var service struct{ Shapes model }
	if err := json.Unmarshal(testkit.ECSModel(t), &service); err != nil {
		t.Fatal(err)
	}
	return service.Shapes
}

// walk visits every value that RegisterTaskDefinition takes, with its path.
func (m model) walk(name, path string, visit func(path, name string, s shape)) {
	s := m[name]
	visit(path, name, s)
	switch s.Type {
	case "structure":
		for _, key := range slices.Sorted(maps.Keys(s.Members)) {
			m.walk(s.Members[key].Shape, strings.TrimPrefix(path+"."+key, "."), visit)
		}
	case "list":
		m.walk(s.Member.Shape, path+"[0]", visit)
	}
}

const registration = "RegisterTaskDefinitionRequest"

// sample returns the smallest value of a shape.
func (m model) sample(name string) *Node {
	s := m[name]
	switch s.Type {
	case "structure":
		n := &Node{}
		for _, key := range s.Required {
			n.Set(key, m.sample(s.Members[key].Shape))
		}
		return n
	case "list":
		return &Node{list: true, items: []*Node{m.sample(s.Member.Shape)}}
	case "map":
		return &Node{}
	case "integer":
		return &Node{scalar: "2"}
	case "boolean":
		return &Node{scalar: "true"}
	}
	return &Node{scalar: quote(append(s.Enum, "x")[0])}
}

// placed returns a document with a value at a path, and what lies between.
func placed(n *Node, path string, value *Node) *Node {
	return placeAt(n.clone(func(_, _ *Node) {}), steps("$."+path), value)
}

func placeAt(n *Node, at []string, value *Node) *Node {
	if len(at) == 0 {
		return value
	}
	if n == nil {
		n = &Node{}
	}
	index, err := strconv.Atoi(at[0])
	if err != nil {
		n.Set(at[0], placeAt(n.Get(at[0]), at[1:], value))
		return n
	}
	n.list = true
	for len(n.items) <= index {
		n.items = append(n.items, nil)
	}
	n.items[index] = placeAt(n.items[index], at[1:], value)
	return n
}

func violations(t *testing.T, root *Node) []Violation {
	t.Helper()
	d, err := Parse(root.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return d.Validate()
}

// refusals returns the errors at a path that are about its own value.
func refusals(t *testing.T, root *Node, path string, codes ...string) []Violation {
	t.Helper()
	return slices.DeleteFunc(violations(t, root), func(v Violation) bool {
		return v.Path != "$."+path || v.Severity != Error || !slices.Contains(codes, v.Code)
	})
}

// only are members of the types that RegisterTaskDefinition does not take.
var only = map[string]string{
	"taskDefinitionArn": "output", "revision": "output", "status": "output", "requiresAttributes": "output",
	"compatibilities": "output",
	"registeredAt":    "output", "deregisteredAt": "output", "deleteRequestedAt": "output", "registeredBy": "output",
	"targetId":   "of requiresAttributes, which have the type of variables",
	"targetType": "of requiresAttributes, which have the type of variables",
}

func TestTypesHaveTheMembersOfBotocore(t *testing.T) {
	t.Parallel()
	kinds := map[string]reflect.Kind{
		"structure": reflect.Struct, "list": reflect.Slice, "map": reflect.Map, "string": reflect.String,
		"integer": reflect.Int, "boolean": reflect.Bool,
	}
	m := readModel(t)
	types := map[string]reflect.Type{"": reflect.TypeFor[TaskDefinition]()}
	members := 0
	m.walk(registration, "", func(path, _ string, s shape) {
		typ := types[path]
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != kinds[s.Type] {
			t.Errorf("%s is a %s, want %s", path, typ, s.Type)
			return
		}
		if s.Type == "list" {
			types[path+"[0]"] = typ.Elem()
		}
		if s.Type != "structure" {
			return
		}
		known := fieldsOf(typ, false).byKey
		for key := range s.Members {
			f, ok := known[key]
			if !ok {
				t.Fatalf("%s has no member %s", typ, key)
			}
			types[strings.TrimPrefix(path+"."+key, ".")] = typ.Field(f.index).Type
			members++
		}
		for key := range known {
			if _, ok := s.Members[key]; !ok && only[key] == "" {
				t.Errorf("%s has the member %s, which botocore has not", typ, key)
			}
		}
	})
	if members < 150 {
		t.Errorf("%d members are compared, want 150", members)
	}
}

func TestEnumerationsAreThoseOfBotocore(t *testing.T) {
	t.Parallel()
	rules := []string{codeEnum, "ulimit-name", "depends-on-condition", "environment-file-type", "placement-constraint"}
	m, base := readModel(t), readTask(hostTask)
	compared := 0
	m.walk(registration, "", func(path, _ string, s shape) {
		if s.Enum == nil {
			return
		}
		compared++
		for _, value := range s.Enum {
			if found := refusals(t, placed(base, path, &Node{scalar: quote(value)}), path, rules...); len(found) > 0 {
				t.Errorf("%s: %s is refused: %v", path, value, found)
			}
		}
		other := refusals(t, placed(base, path, &Node{scalar: `"other"`}), path, rules...)
		if strings.HasSuffix(path, ".protocol") {
			return // ECS registers any protocol, as tcp; port-protocol warns of it
		}
		if len(other) != 1 {
			t.Errorf("%s: a value that is not one of %v: %v", path, s.Enum, other)
		}
	})
	if compared < 20 {
		t.Errorf("%d enumerations are compared, want 20", compared)
	}
}

func readTask(doc string) *Node {
	n, _ := readNode([]byte(doc))
	return n
}

// Without a member that botocore requires, there is one error more.
func TestRequiredMembersAreThoseOfBotocore(t *testing.T) {
	t.Parallel()
	m, base := readModel(t), readTask(hostTask)
	valid := map[string]string{"value": `"arn:aws:s3:::bucket/web.env"`, "sizeInGiB": "21"} // where a sample is not
	compared := 0
	m.walk(registration, "", func(path, name string, s shape) {
		for _, key := range s.Required {
			compared++
			whole := placed(base, path, m.sample(name))
			if path == "" {
				whole = base.clone(func(_, _ *Node) {})
			}
			if value, ok := valid[key]; ok {
				whole = placed(whole, path+"."+key, &Node{scalar: value})
			}
			before := violations(t, whole)
			part := whole
			for _, step := range steps("$." + path) {
				if index, err := strconv.Atoi(step); err == nil {
					part = part.items[index]
				} else if step != "" {
					part = part.Get(step)
				}
			}
			part.Delete(key)
			after := slices.DeleteFunc(violations(t, whole),
				func(v Violation) bool { return v.Severity != Error || slices.Contains(before, v) })
			if len(after) == 0 {
				t.Errorf("%s: the member %s is not required", path, key)
			}
		}
	})
	if compared < 35 {
		t.Errorf("%d required members are compared, want 35", compared)
	}
}

func TestBoundsAreThoseOfBotocore(t *testing.T) {
	t.Parallel()
	rules := []string{codeRange, "tag-count", "tag-key", "tag-value"}
	m, base := readModel(t), readTask(webTask)
	compared := 0
	check := func(path string, n *Node, refused bool) {
		compared++
		if found := refusals(t, placed(base, path, n), path, rules...); (len(found) > 0) != refused {
			t.Errorf("%s: %.60s: refused %v, want %v", path, n.JSON(), found, refused)
		}
	}
	m.walk(registration, "", func(path, _ string, s shape) {
		of := func(size float64) *Node {
			switch s.Type {
			case "integer":
				return &Node{scalar: fmt.Sprint(int(size))}
			case "list":
				tags := &Node{list: true}
				for i := range int(size) {
					tags.Append(readTask(fmt.Sprintf(`{"key": "k%d", "value": "v"}`, i)))
				}
				return tags
			}
			return &Node{scalar: quote(strings.Repeat("x", int(size)))}
		}
		if s.Min != nil {
			check(path, of(*s.Min), false)
			if *s.Min > 0 {
				check(path, of(*s.Min-1), true)
			}
		}
		if s.Max != nil {
			check(path, of(*s.Max), false)
			check(path, of(*s.Max+1), true)
		}
		if s.Pattern != "" {
			check(path, &Node{scalar: `"é _.:/=+-@1"`}, false)
			check(path, &Node{scalar: `"a*"`}, true)
		}
	})
	if compared < 15 {
		t.Errorf("%d bounds are compared, want 15", compared)
	}
}
