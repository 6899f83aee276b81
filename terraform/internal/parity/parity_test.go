package parity

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// input is a plain task definition with the mesh file of its cluster.
type input struct {
	Definition map[string]any  `json:"definition"`
	Mesh       json.RawMessage `json:"mesh"`
}

// rendered are the outputs of modules/render.
type rendered struct {
	ContainerDefinitions []any             `json:"container_definitions"`
	Volumes              []string          `json:"volumes"`
	Tags                 map[string]string `json:"tags"`
	PlacementConstraints []any             `json:"placement_constraints"`
}

func readInputs(t *testing.T) map[string]input {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]input{}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var in input
		if err := json.Unmarshal(doc, &in); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		inputs[strings.TrimSuffix(filepath.Base(file), ".json")] = in
	}
	return inputs
}

// admit is what consul-ecs admit makes of an input.
func admit(t *testing.T, in input) map[string]any {
	t.Helper()
	mesh, err := admission.ParseMesh(in.Mesh)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(in.Definition)
	if err != nil {
		t.Fatal(err)
	}
	r, err := admission.Admit(doc, admission.Options{Mesh: mesh})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rejected(false) {
		t.Fatalf("rejected: %v", r.Findings)
	}
	return comparable(t, r.After.Bytes())
}

// assemble puts the outputs of modules/render into the definition, as the resource of
// modules/mesh-task does.
func assemble(t *testing.T, in input, r rendered) map[string]any {
	t.Helper()
	def := map[string]any{"networkMode": "awsvpc"}
	for key, value := range in.Definition {
		def[key] = value
	}
	def["containerDefinitions"] = r.ContainerDefinitions
	volumes := list(def["volumes"])
	for _, name := range r.Volumes {
		if !slices.ContainsFunc(volumes, func(v any) bool { return v.(map[string]any)["name"] == name }) {
			volumes = append(volumes, map[string]any{"name": name})
		}
	}
	def["volumes"] = volumes
	def["placementConstraints"] = r.PlacementConstraints
	var tags []any
	for key, value := range r.Tags {
		tags = append(tags, map[string]any{"key": key, "value": value})
	}
	def["tags"] = tags
	doc, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	return comparable(t, doc)
}

func list(v any) []any {
	items, _ := v.([]any)
	return slices.Clone(items)
}

// comparable is a definition as ECS has it after registration: defaults filled in, and
// neither the order of tags nor the layout of the configuration's JSON in it.
func comparable(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	parsed, err := taskdef.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	def := parsed.Definition
	slices.SortFunc(def.Tags, func(a, b taskdef.Tag) int { return strings.Compare(a.Key, b.Key) })
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range list(whole["containerDefinitions"]) {
		for _, e := range list(c.(map[string]any)["environment"]) {
			variable := e.(map[string]any)
			if variable["name"] != config.EnvVar {
				continue
			}
			var value any
			if err := json.Unmarshal([]byte(variable["value"].(string)), &value); err != nil {
				t.Fatal(err)
			}
			variable["value"] = value
		}
	}
	return whole
}

// differences names the members in which two values differ.
func differences(path string, admitted, rendered any) []string {
	switch a := admitted.(type) {
	case map[string]any:
		r, is := rendered.(map[string]any)
		if !is {
			break
		}
		var found []string
		for key := range union(a, r) {
			found = append(found, differences(path+"."+key, a[key], r[key])...)
		}
		slices.Sort(found)
		return found
	case []any:
		r, is := rendered.([]any)
		if !is || len(r) != len(a) {
			break
		}
		var found []string
		for i := range a {
			found = append(found, differences(fmt.Sprintf("%s[%d]", path, i), a[i], r[i])...)
		}
		return found
	}
	if reflect.DeepEqual(admitted, rendered) {
		return nil
	}
	return []string{fmt.Sprintf("%s: admit has %v, render has %v", path, admitted, rendered)}
}

func union(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}
