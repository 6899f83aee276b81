package admission

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzAdmit(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(corpus)) {
		f.Add(readTestdata(f, "plain", name), true)
	}
	f.Add(definition("", `"command": ["x"]`), false)
	f.Add(ownProxy(), false)
	f.Add([]byte(`{"Resources": {"Web": {"Type": "AWS::ECS::TaskDefinition"}}}`), true)
	agent, direct := meshFile(f, "agent"), meshFile(f, "direct")
	f.Fuzz(func(t *testing.T, doc []byte, agents bool) {
		mesh := direct
		if agents {
			mesh = agent
		}
		checkStable(t, doc, mesh)
	})
}

// Each seed is a definition of the corpus some of whose values have changed.
func FuzzAdmitMutated(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	// YAML
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(corpus)),
		func(name string) bool { return fileName(name) == name })
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var value any
		if err := json.Unmarshal(readTestdata(t, "plain", names[r.IntN(len(names))]), &value); err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(6) {
			value = mutate(r, value)
		}
		doc, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		checkStable(t, doc, meshFile(t, []string{"agent", "direct", "dataplane", "transparent"}[r.IntN(4)]))
	})
}

// mutate changes a part of a JSON value.
func mutate(r *rand.Rand, value any) any {
	none := map[string]any{"Ref": "AWS::NoValue"}
	others := []any{
		nil, "", "true", "8080", -1, []any{}, map[string]any{}, none,
		map[string]any{"Fn::If": []any{"C", []any{}, none}}, "{{resolve:ssm:x}}",
		volumeName, "consul-dataplane", "sidecar-proxy", "consul-ecs-mesh-init", defaultBootstrapDir, wrapper, "web",
		"api:1234", "mesh-gateway", "connect-proxy:web",
	}
	other := others[r.IntN(len(others))]
	if r.IntN(6) == 0 {
		return other
	}
	switch value := value.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		labels := []string{"service-name", "upstreams", "mesh-inject", "gateway-kind", "native", "depends",
			"expose-checks", "kind", "injected-by"}
		switch {
		case r.IntN(12) == 0:
			value["consul.hashicorp.com/"+labels[r.IntN(len(labels))]] = other
		case len(keys) == 0:
		case r.IntN(8) == 0:
			delete(value, keys[r.IntN(len(keys))])
		default:
			key := keys[r.IntN(len(keys))]
			value[key] = mutate(r, value[key])
		}
		return value
	case []any:
		if len(value) == 0 {
			return append(value, other)
		}
		i := r.IntN(len(value))
		switch r.IntN(8) {
		case 0:
			return slices.Delete(value, i, i+1)
		case 1:
			return append(value, value[i])
		}
		value[i] = mutate(r, value[i])
		return value
	}
	return other
}

// checkStable admits what is a definition twice: nothing of it may be lost, and the second
// time nothing may change.
func checkStable(t *testing.T, doc []byte, mesh *Mesh) {
	t.Helper()
	first, err := Admit(doc, Options{Mesh: mesh})
	if err != nil {
		t.Skip()
	}
	after, err := read(first.After.Bytes(), first.Format, "")
	if err != nil {
		t.Fatalf("the output is not read: %v\n%s", err, first.After.Bytes())
	}
	if paths := missingPaths(first.Before.Task, after.Task, "$"); len(paths) > 0 {
		t.Fatalf("the output lacks %v:\n%s", paths, after.Bytes())
	}
	second, err := Admit(first.After.Bytes(), Options{Mesh: mesh, Format: first.Format})
	if err != nil {
		t.Fatalf("the output is not admitted: %v\n%s", err, first.After.Bytes())
	}
	if !bytes.Equal(first.After.Bytes(), second.After.Bytes()) {
		t.Fatalf("the second admission changes the first:\n%s\n%s", first.After.Bytes(), second.After.Bytes())
	}
}
