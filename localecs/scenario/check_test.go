package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/report"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
)

// What a step says about what stays is exact: it is wrong when there is nothing,
// too.
func TestWhatIsForetoldHasToBeThere(t *testing.T) {
	t.Parallel()
	service, failed := server.Leftover{Token: "1", Method: "services"}, server.Leftover{Agent: "n", State: "failed"}
	leaves := file.Leaves{Tokens: map[string]string{"services": "nobody logs out"}}
	dead := file.Leaves{Agent: "it was killed"}
	told := &recorder{}
	r := &runner{file: &file.Scenario{Name: "x"}, out: told}
	const want = "no token of services is left of it, but the step says that one is: nobody logs out"
	if err := r.leftAsTold("api-1", nil, leaves); err == nil || err.Error() != want || len(told.events) != 0 {
		t.Errorf("got %v, told %+v; want %s", err, told.events, want)
	}
	const lives = "its agent has left, but the step says that it fails: it was killed"
	if err := r.leftAsTold("api-1", nil, dead); err == nil || err.Error() != lives {
		t.Errorf("got %v; want %s", err, lives)
	}
	for leftover, leaves := range map[server.Leftover]file.Leaves{service: leaves, failed: dead} {
		if err := r.leftAsTold("api-1", []server.Leftover{leftover}, leaves); err != nil {
			t.Error(err)
		}
	}
	slices.SortFunc(r.left, func(a, b report.Leftover) int { return strings.Compare(b.What, a.What) })
	if diff := cmp.Diff([]report.Leftover{
		{Task: "api-1", What: "token 1 of services", Reason: "nobody logs out"}, {Task: "api-1", What: "agent n, which is failed", Reason: "it was killed"},
	}, r.left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	slices.SortFunc(told.events, func(a, b progress.Event) int { return strings.Compare(b.Text, a.Text) })
	if len(told.events) != 2 || told.events[0].Kind != progress.Left || told.events[0].Task != "api-1" || told.events[0].Text != "left: token 1 of services, as nobody logs out" {
		t.Errorf("told %+v", told.events)
	}
}

const oneContainer = `{"family": "f", "networkMode": "awsvpc", "containerDefinitions": [{"name": "a", "image": "i", "memory": 64, "command": ["x"]}]}`

// Everything that the scenario file refers to is looked at before a run.
func TestPrepareReportsEveryMistakeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "good.json"), []byte(oneContainer), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &file.Scenario{
		Dir:              dir,
		Images:           map[string]*file.Image{"i": {Programs: map[string]string{"/x": "${none}/x"}}},
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
	tasks := plan.roster()
	if api, web := tasks.Task("api"), tasks.Task("web"); api.Task != nil || api.Service != "" || api.Definition != web.Definition || api.Application() != "a" {
		t.Errorf("got %+v and %+v", api, web)
	}
}
