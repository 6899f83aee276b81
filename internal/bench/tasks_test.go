package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Every definition of the figures is one that ECS takes.
func TestDefinitionsAreValid(t *testing.T) {
	t.Parallel()
	for name, def := range map[string]*taskdef.TaskDefinition{
		"side by side": fiveContainers(false), "chain": fiveContainers(true),
		"sleep": sleeper(), "asker": asker(),
	} {
		for _, v := range def.Validate() {
			if v.Severity == taskdef.Error {
				t.Errorf("%s: %s", name, v)
			}
		}
	}
	var words []string
	for _, c := range fiveContainers(true).ContainerDefinitions {
		for _, e := range c.DependsOn {
			words = append(words, c.Name+" after "+e.ContainerName+" "+e.Condition)
		}
	}
	want := []string{"c1 after c0 SUCCESS", "c2 after c1 START", "c3 after c2 START", "c4 after c3 START"}
	if !slices.Equal(words, want) {
		t.Errorf("chain is %q, want %q", words, want)
	}
}

// The figure itself, once: ten tasks in networks of their own, and the floors.
func TestTasksAreMeasured(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missing(t, "localecs in this process needs root")
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-only", "tasks", "-n", "1", "-json"}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var rows []struct {
		Figure     string
		Ours       struct{ Median float64 }
		References []struct{ What string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[1].Ours.Median <= rows[0].Ours.Median || len(rows[1].References) != 2 {
		t.Errorf("got %+v", rows)
	}
}
