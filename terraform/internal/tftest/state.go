package tftest

import (
	"encoding/json"
	"fmt"
	"testing"
)

// State is a state or what a plan would make of it.
type State struct {
	t testing.TB
	// Resources are the attributes of every resource by its address; unknown ones are absent.
	Resources map[string]map[string]any
	// Outputs are the values of the root module's outputs; unknown ones are nil.
	Outputs map[string]any
}

type moduleValues struct {
	Resources []struct {
		Address string
		Mode    string
		Values  map[string]any
	}
	Children []moduleValues `json:"child_modules"`
}

// show reads the state, or a plan's file, under a key of terraform show -json.
func (w *Workspace) show(key string, file ...string) *State {
	w.t.Helper()
	out := w.must(append([]string{"show", "-json"}, file...)...)
	var all map[string]json.RawMessage
	var values struct {
		Root    moduleValues `json:"root_module"`
		Outputs map[string]struct{ Value any }
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		w.t.Fatal(err)
	}
	if raw, ok := all[key]; ok {
		if err := json.Unmarshal(raw, &values); err != nil {
			w.t.Fatal(err)
		}
	}
	s := &State{t: w.t, Resources: map[string]map[string]any{}, Outputs: map[string]any{}}
	for name, o := range values.Outputs {
		s.Outputs[name] = o.Value
	}
	s.add(values.Root)
	return s
}

func (s *State) add(m moduleValues) {
	for _, r := range m.Resources {
		if r.Mode == "managed" {
			s.Resources[r.Address] = r.Values
		}
	}
	for _, child := range m.Children {
		s.add(child)
	}
}

// Resource returns the attributes of the resource at an address.
func (s *State) Resource(address string) map[string]any {
	s.t.Helper()
	r, ok := s.Resources[address]
	if !ok {
		s.t.Fatalf("no resource %s", address)
	}
	return r
}

// JSON decodes an attribute that holds JSON, such as a policy or container_definitions.
func (s *State) JSON(address, attribute string, into any) {
	s.t.Helper()
	text := fmt.Sprint(s.Resource(address)[attribute])
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%s of %s is not JSON: %v\n%s", attribute, address, err, text)
	}
}
