package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	if diff := cmp.Diff(want, disorder(v, []string{"killed"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a step says about tokens is exact: they are those of its methods, and it
// is wrong when there are none, too.
func TestForetoldTokensAreExact(t *testing.T) {
	t.Parallel()
	service, client := server.Leftover{Token: "1", Method: "services"}, server.Leftover{Token: "2", Method: "clients"}
	instance := server.Leftover{Service: "api-1234"}
	leaves := map[string]string{"services": "nobody logs out"}
	for _, c := range []struct {
		name       string
		found      []server.Leftover
		leaves     map[string]string
		told, rest []server.Leftover
	}{
		{"nothing", nil, nil, nil, nil},
		{"nothing foretold", []server.Leftover{service, instance}, nil, nil, []server.Leftover{service, instance}},
		{"of one method", []server.Leftover{service, client, instance}, leaves, []server.Leftover{service}, []server.Leftover{client, instance}},
	} {
		told, rest := foretold(c.found, c.leaves)
		same := cmp.AllowUnexported(server.Leftover{})
		if cmp.Diff(c.told, told, same) != "" || cmp.Diff(c.rest, rest, same) != "" {
			t.Errorf("%s: foretold %v, rest %v; want %v and %v", c.name, told, rest, c.told, c.rest)
		}
	}
	told := &recorder{}
	r := &runner{file: &file.Scenario{Name: "x"}, out: told}
	const want = "no token of services is left of it, but the step says that one is: nobody logs out"
	if err := r.leftTokens("api-1", nil, leaves); err == nil || err.Error() != want || len(told.events) != 0 {
		t.Errorf("got %v, told %+v; want %s", err, told.events, want)
	}
	if err := r.leftTokens("api-1", []server.Leftover{service}, leaves); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]report.Leftover{{Task: "api-1", What: "token 1 of services", Reason: "nobody logs out"}}, r.left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if len(told.events) != 1 || told.events[0].Kind != progress.Left || told.events[0].Task != "api-1" || told.events[0].Text != "left: token 1 of services, as nobody logs out" {
		t.Errorf("told %+v", told.events)
	}
}

// A service may be left longer than a token.
func TestWhatIsLeftHasItsTime(t *testing.T) {
	t.Parallel()
	token, service := server.Leftover{Token: "1", Method: "m"}, server.Leftover{Service: "api-1234"}
	for _, c := range []struct {
		rest []server.Leftover
		err  error
		want time.Duration
		text string
	}{
		{[]server.Leftover{token}, nil, 15 * time.Second, "still in Consul after 15s: token 1 of m"},
		{[]server.Leftover{token, service}, nil, 15 * time.Second, "still in Consul after 15s: token 1 of m, service api-1234"},
		{[]server.Leftover{service}, nil, 75 * time.Second, "still in Consul after 1m15s: service api-1234"},
		{nil, errors.New("list tokens: refused"), 15 * time.Second, "still in Consul after 15s: list tokens: refused"},
	} {
		if got := limitOf(c.rest); got != c.want || still(got, c.rest, c.err) != c.text {
			t.Errorf("%v: %s, %q; want %s, %q", c.rest, got, still(got, c.rest, c.err), c.want, c.text)
		}
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
		Steps: []file.Step{
			{Kill: &file.Kill{Task: "web", Container: "a"}},
			{Kill: &file.Kill{Task: "web", Container: "b"}},
			{Await: &file.Await{Task: "api", Container: "c"}},
			{Await: &file.Await{Service: "api"}},
		},
	}
	const want = "steps[1]: task \"web\" has no container \"b\"\nsteps[2]: task \"api\" has no container \"c\""
	if _, _, err := Prepare(f, nil, network.AWSVPC); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	f.Steps = f.Steps[:1]
	plan, _, err := Prepare(f, nil, network.AWSVPC)
	if err != nil {
		t.Fatal(err)
	}
	tasks := plan.tasks()
	if api, web := tasks["api"], tasks["web"]; api.service != "api" || web.service != "" || api.def != web.def || web.application != "a" {
		t.Errorf("got %+v and %+v", api, web)
	}
}
