package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// scenario returns one with the task definition good.json.
func scenario(t *testing.T, tasks map[string]Task, steps ...Step) *Scenario {
	t.Helper()
	const definition = `{"family": "f", "networkMode": "awsvpc", "taskRoleArn": "arn:aws:iam::111111111111:role/r",
	"containerDefinitions": [
		{"name": "a", "image": "i", "memory": 64, "command": ["x"]},
		{"name": "b", "image": "i", "memory": 64, "command": ["x"], "restartPolicy": {"enabled": true}}]}`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "good.json"), []byte(definition), 0o644); err != nil {
		t.Fatal(err)
	}
	return &Scenario{Dir: dir, Account: "111111111111", Roles: map[string]Role{"r": {}}, Tasks: tasks, Steps: steps}
}

func TestReadReportsEveryMistake(t *testing.T) {
	t.Parallel()
	f := scenario(t, map[string]Task{
		"web":  {Definition: "good.json"},
		"api":  {Definition: "good.json", Service: "api"},
		"db":   {Definition: "good.json", Commands: map[string][]string{"a": {"y"}, "d": {"y"}, "c": {"y"}}},
		"none": {Definition: "none.json"},
	},
		Step{Kill: &chaos.Kill{Task: "web", Container: "a"}},
		Step{Kill: &chaos.Kill{Task: "web", Container: "c"}},
		Step{Kill: &chaos.Kill{Task: "none", Container: "c"}},
		Step{Await: &Await{Task: "api", Container: "c"}},
		Step{Await: &Await{Task: "web", Container: "b", Restarts: 1}},
		Step{Await: &Await{Task: "web", Container: "a", Restarts: 1}},
		Step{Await: &Await{Service: "api"}},
	)
	_, _, err := Read(f)
	want := []string{
		"read task definition: DIR/none.json: no such file or directory",
		`tasks["db"].commands: there is no container "c" in family f`,
		`tasks["db"].commands: there is no container "d" in family f`,
		`steps[1]: task "web" has no container "c"`,
		`steps[3]: task "api" has no container "c"`,
		`steps[5]: container "a" of task "web" has no restartPolicy`,
	}
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(err.Error(), f.Dir, "DIR"), "\n")); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	f = scenario(t, map[string]Task{"web": {Definition: "good.json"}})
	f.Roles = nil
	if _, _, err := Read(f); err == nil ||
		!strings.HasSuffix(err.Error(),
			"good.json: taskRoleArn arn:aws:iam::111111111111:role/r is not among the scenario's roles: add roles: "+
				"{r: {}}, and its account") {
		t.Errorf("got %v", err)
	}
}

// A missing image is reported before the task fails to start for it.
func TestMissingImagesAreReported(t *testing.T) {
	t.Parallel()
	f := scenario(t, map[string]Task{"web": {Definition: "good.json"}})
	d, _, err := Read(f)
	warnings := d.MissingImages(f)
	for i := range warnings {
		warnings[i] = strings.ReplaceAll(warnings[i], f.Dir, "DIR")
	}
	want := []string{
		"DIR/good.json: container a: image i is not among the scenario's: its task will not start",
		"DIR/good.json: container b: image i is not among the scenario's: its task will not start",
	}
	if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	f.Images = map[string]*Image{"i": {}}
	if warnings := d.MissingImages(f); len(warnings) > 0 {
		t.Errorf("got %q", warnings)
	}
}

func TestTasksHaveTheirOwnCommands(t *testing.T) {
	t.Parallel()
	read, _, err := Read(scenario(t, map[string]Task{
		"web": {Definition: "good.json"}, "api": {Definition: "good.json"},
		"db": {Definition: "good.json", Commands: map[string][]string{"a": {"y", "-z"}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, defs := map[string]string{}, read.Tasks
	for task, def := range defs {
		for _, c := range def.ContainerDefinitions {
			got[task] += strings.Join(c.Command, " ") + ";"
		}
	}
	if diff := cmp.Diff(map[string]string{"web": "x;x;", "api": "x;x;", "db": "y -z;x;"}, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if defs["web"] != defs["api"] {
		t.Error("a file was read twice")
	}
}

// A service runs what Fargate takes, from the beginning and when it is deployed.
func TestServicesAreFargates(t *testing.T) {
	t.Parallel()
	f := scenario(t, nil, Step{Deploy: &Deploy{Service: "api"}},
		Step{Deploy: &Deploy{Service: "api", Definition: "good.json"}})
	f.Services = map[string]Service{
		"api": {Definition: "good.json"}, "web": {Definition: "fargate.json"}, "db": {Definition: "none.json"},
	}
	const fargate = `{"family": "w", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
	"memory": "512",
		"containerDefinitions": [{"name": "a", "image": "i", "command": ["x"]}]}`
	if err := os.WriteFile(filepath.Join(f.Dir, "fargate.json"), []byte(fargate), 0o644); err != nil {
		t.Fatal(err)
	}
	d, _, err := Read(f)
	const needs = "good.json: a service needs networkMode awsvpc and FARGATE among requiresCompatibilities"
	want := []string{
		"read task definition: DIR/none.json: no such file or directory", `services["api"]: ` + needs,
		"steps[1]: deploy: " + needs,
	}
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(err.Error(), f.Dir, "DIR"), "\n")); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
	if len(d.Files) != 2 || d.Files["fargate.json"].Family != "w" {
		t.Errorf("read %v", d.Files)
	}
}
