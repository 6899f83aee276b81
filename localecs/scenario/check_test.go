package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

const oneContainer = `{"family": "f", "networkMode": "awsvpc", "containerDefinitions": [{"name": "a", "image": "i", ` +
	`"memory": 64, "command": ["x"]}]}`

// Everything that the scenario file refers to is looked at before a run.
func TestPrepareReportsEveryMistakeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "good.json"), []byte(oneContainer), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &file.Scenario{
		Dir: dir,
		Images: map[string]*file.Image{
			"i": {Programs: file.Programs{Paths: map[string]string{"/x": "${none}/x"}}},
		},
		EnvironmentFiles: map[string]string{"arn:a": "none.env"},
		Tasks:            map[string]file.Task{"web": {Definition: "none.json"}},
	}
	_, _, err := Prepare(f, nil, network.AWSVPC)
	for _, want := range []string{"none.json", "none.env", "${none}"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\n%v", want, err)
		}
	}
	f = &file.Scenario{
		Dir:   dir,
		Tasks: map[string]file.Task{"web": {Definition: "good.json"}, "api": {Definition: "good.json", Service: "api"}},
	}
	plan, _, err := Prepare(f, nil, network.AWSVPC)
	if err != nil {
		t.Fatal(err)
	}
	tasks := plan.taskSet()
	api, web := tasks.Task("api"), tasks.Task("web")
	if api.Task != nil {
		t.Errorf("got %+v and %+v", api, web)
	}
	testkit.Equal(t, "Service", api.Service, "")
	testkit.Equal(t, "Definition", api.Definition, web.Definition)
}
