package view_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// hello is a run of examples/hello-mesh.
func hello(t *testing.T) view.RecordedRun {
	t.Helper()
	data, err := os.ReadFile("testdata/hello-mesh.json")
	if err != nil {
		t.Fatal(err)
	}
	var run view.RecordedRun
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	return run
}
