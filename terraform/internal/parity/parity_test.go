package parity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// input is a plain task definition with the mesh file of its cluster.
type input struct {
	Definition map[string]any  `json:"definition"`
	Mesh       json.RawMessage `json:"mesh"`
}

func TestMain(m *testing.M) { os.Exit(tftest.Main(m)) }

func TestRenderedTaskEqualsAdmittedTask(t *testing.T) {
	t.Parallel()
	inputs := readInputs(t)
	if len(inputs) < 20 {
		t.Fatalf("%d inputs, want 20 or more", len(inputs))
	}
	tasks := map[string]any{}
	for name, in := range inputs {
		tasks[name] = in.variables(t)
	}
	state := tftest.New(t, "modules/render/tests/each", stub.AWS6).Apply(map[string]any{"tasks": tasks})
	rendered := object(state.Outputs["tasks"])
	for name, in := range inputs {
		admitted, warned := admit(t, in)
		for _, difference := range differences("$", admitted, assemble(t, in, object(rendered[name]))) {
			t.Errorf("%s: %s", name, difference)
		}
		if got := warnedOf(t, object(rendered[name])); !slices.Equal(got, warned) {
			t.Errorf("%s: the module warns about %q, admit about %q", name, got, warned)
		}
	}
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
		in.Definition["taskRoleArn"] = "arn:aws:iam::123456789012:role/consul-ecs/web" // of the caller of render
		inputs[strings.TrimSuffix(filepath.Base(file), ".json")] = in
	}
	return inputs
}

// warnedOf returns the containers that the warnings of modules/render are about.
func warnedOf(t *testing.T, outputs map[string]any) (containers []string) {
	t.Helper()
	for _, warning := range list(outputs["warnings"]) {
		containers = append(containers, strings.Fields(warning.(string))[1])
	}
	slices.Sort(containers)
	return containers
}

// consulECS is the image of consul-ecs where an input names none.
const consulECS = "registry.example.com/consul-ecs:1.0.0-beta.1"

// admit returns what consul-ecs admit makes of an input, and the containers whose programs or users it
// warns about.
func admit(t *testing.T, in input) (definition map[string]any, warned []string) {
	t.Helper()
	mesh, err := admission.ParseMesh(in.Mesh)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(in.Definition)
	if err != nil {
		t.Fatal(err)
	}
	r, err := admission.Admit(doc, admission.Options{Mesh: mesh, Image: consulECS})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rejected(false) {
		t.Fatalf("rejected: %v", r.Findings)
	}
	for _, f := range r.Findings {
		if slices.Contains([]string{"ADM-WRAP", "ADM-ENTRYPOINT", "ADM-VOLUME-OWNER"}, f.Code) {
			warned = append(warned, strings.Fields(f.Message)[1])
		}
	}
	slices.Sort(warned)
	return registered(t, r.After.Bytes()), warned
}

// variables returns the variables of modules/render for an input.
func (in input) variables(t *testing.T) map[string]any {
	t.Helper()
	configuration := map[string]any{}
	if err := json.Unmarshal(in.Mesh, &configuration); err != nil {
		t.Fatal(err)
	}
	settings := object(configuration["admission"])
	delete(configuration, "admission")
	images, client := object(settings["images"]), object(settings["client"])
	vars := map[string]any{
		"family":                   in.Definition["family"],
		"requires_compatibilities": in.Definition["requiresCompatibilities"],
		"container_definitions":    list(in.Definition["containerDefinitions"]),
		"configuration":            configuration,
		"images": map[string]any{
			"consul_ecs": cmp.Or(images["consulECS"], any(consulECS)), "envoy": images["envoy"],
			"dataplane": images["dataplane"], "consul": images["consul"],
		},
		"client": map[string]any{
			"retry_join": client["retryJoin"], "datacenter": client["datacenter"],
			"configuration": client["configuration"],
		},
		"secrets":           settings["secrets"],
		"log_configuration": settings["logConfiguration"],
		"envoy_concurrency": settings["envoyConcurrency"],
		"ignore_containers": settings["ignoreContainers"],
		"memory":            in.Definition["memory"],
		"sidecars":          sidecars(object(settings["sidecars"])),
		"tags":              tags(in.Definition["tags"]),
		"runtime_platform":  nil,
	}
	if platform, given := in.Definition["runtimePlatform"]; given {
		vars["runtime_platform"] = map[string]any{"cpu_architecture": object(platform)["cpuArchitecture"]}
	}
	names := []any{}
	for _, v := range list(in.Definition["volumes"]) {
		names = append(names, object(v)["name"])
	}
	vars["volumes"] = names
	return vars
}

// sidecars returns the settings of a mesh file as the variable of modules/render has them.
func sidecars(settings map[string]any) map[string]any {
	roles := map[string]any{}
	for role, members := range settings {
		converted := map[string]any{}
		for key, value := range object(members) {
			if slices.Contains([]string{"healthCheck", "restartPolicy", "logConfiguration"}, key) {
				inner := map[string]any{}
				for k, v := range object(value) {
					inner[snake(k)] = v
				}
				value = inner
			}
			converted[snake(key)] = value
		}
		roles[snake(role)] = converted
	}
	return roles
}

// snake returns a key of the ECS API as Terraform writes it.
func snake(key string) string {
	return strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllString(key, "_$0"))
}

// assemble puts the outputs of modules/render into the definition, as the resource of
// modules/mesh-task does.
func assemble(t *testing.T, in input, outputs map[string]any) map[string]any {
	t.Helper()
	def := map[string]any{"networkMode": "awsvpc"}
	maps.Copy(def, in.Definition)
	def["containerDefinitions"] = outputs["container_definitions"]
	volumes := list(def["volumes"])
	for _, name := range list(outputs["volumes"]) {
		if !slices.ContainsFunc(volumes, func(v any) bool { return object(v)["name"] == name }) {
			volumes = append(volumes, map[string]any{"name": name})
		}
	}
	def["volumes"] = volumes
	def["placementConstraints"] = outputs["placement_constraints"]
	var list []any
	for key, value := range object(outputs["tags"]) {
		list = append(list, map[string]any{"key": key, "value": value})
	}
	def["tags"] = list
	doc, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	return registered(t, doc)
}

func object(v any) map[string]any {
	members, _ := v.(map[string]any)
	return members
}

func tags(v any) map[string]any {
	found := map[string]any{}
	for _, tag := range list(v) {
		found[object(tag)["key"].(string)] = object(tag)["value"]
	}
	return found
}

func list(v any) []any {
	items, _ := v.([]any)
	return append([]any{}, items...)
}

// registered returns a definition as ECS has it after registration: defaults filled in, and
// neither the order of tags nor the layout of the configuration's JSON in it.
//
// It has no tag with the seal, which is a hash of what admit wrote, with the order of the
// members that the definition came with. Terraform has no such document: it knows neither ARNs
// before the apply nor an order of members, so it leaves the tag out.
func registered(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	parsed, err := taskdef.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	def := parsed.Definition
	def.Tags = slices.DeleteFunc(def.Tags, func(t taskdef.Tag) bool { return t.Key == taskdef.SealTag })
	slices.SortFunc(def.Tags, func(a, b taskdef.Tag) int { return strings.Compare(a.Key, b.Key) })
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, c := range list(document["containerDefinitions"]) {
		// Terraform has both lists of capabilities, since it compares what ECS answers; ECS
		// makes no difference between an empty list and none.
		// The label with the hash is for who admits again.
		delete(object(object(c)["dockerLabels"]), "consul.hashicorp.com/injected-seal")
		capabilities := object(object(object(c)["linuxParameters"])["capabilities"])
		maps.DeleteFunc(capabilities, func(_ string, v any) bool { return len(list(v)) == 0 })
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
	return document
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
