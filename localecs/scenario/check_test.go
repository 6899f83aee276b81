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
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

func TestRequestsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	lossy := []traffic.Phase{
		{Answered: 100, Failed: 9, Limits: traffic.Limits{Max: new(int)}}, // judged by itself
		{Answered: 100, Failed: 1, First: "EOF"},
		{Answered: 100, Failed: 2, First: "reset"},
	}
	for _, c := range []struct {
		name   string
		phases []traffic.Phase
		checks file.Checks
		want   []string
	}{
		{"nothing asked", nil, file.Checks{}, nil},
		{"no traffic", nil, file.Checks{MinRequests: 1}, []string{"only 0 requests were answered; at least 1 must be"}},
		{"losses of phases without limits", lossy, file.Checks{FailedRequests: 2}, []string{"3 of 203 requests failed; 2 may. First: EOF"}},
		{"as many as may", lossy, file.Checks{FailedRequests: 3, MinRequests: 300}, nil},
		{"too few in all", lossy, file.Checks{FailedRequests: 3, MinRequests: 301}, []string{"only 300 requests were answered; at least 301 must be"}},
	} {
		r := &runner{file: &file.Scenario{Checks: c.checks}, phases: c.phases}
		r.checkRequests()
		if diff := cmp.Diff(c.want, r.failures); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDisorderSparesWhatAStepHasKilled(t *testing.T) {
	t.Parallel()
	code := func(n int) *int { return &n }
	v := scheduler.View{Containers: []scheduler.ContainerView{
		{Name: "fine", KnownStatus: "STOPPED", ExitCode: code(0)},
		{Name: "failed", KnownStatus: "STOPPED", ExitCode: code(1)},
		{Name: "killed", KnownStatus: "STOPPED", ExitCode: code(137)},
		{Name: "slow", KnownStatus: "STOPPED", ExitCode: code(137)},
		{Name: "never", KnownStatus: "STOPPED", Reason: "no image"},
		{Name: "up", KnownStatus: "RUNNING"},
	}}
	want := []string{"container slow had to be killed", "container never never ran: no image", "container up is still RUNNING"}
	if diff := cmp.Diff(want, disorder(v, []string{"killed"}, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = append([]string{"container failed exited with 1"}, want...)
	if diff := cmp.Diff(want, disorder(v, []string{"killed"}, true)); diff != "" {
		t.Errorf("clean exits (-want +got):\n%s", diff)
	}
}

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
	tasks := plan.tasks()
	if api, web := tasks["api"], tasks["web"]; api.service != "api" || web.service != "" || api.def != web.def || web.application != "a" {
		t.Errorf("got %+v and %+v", api, web)
	}
}
