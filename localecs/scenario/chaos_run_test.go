package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func setting(t *testing.T, example string) *ChaosSetup {
	t.Helper()
	f, err := file.Load(filepath.Join(testkit.Root(), "examples", example))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewChaosSetup(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChaosSetupHasTheTopology(t *testing.T) {
	t.Parallel()
	api := []chaos.Container{
		{Name: "consul-client", Role: chaos.Agent, Program: "consul", Essential: true, Restarts: true},
		{Name: "sidecar-proxy", Role: chaos.Proxy, Program: "envoy", Essential: true},
		{Name: "consul-ecs-health-sync", Role: chaos.HealthSync, Program: "consul-ecs"},
		{Name: "api", Role: chaos.Application, Program: "hello", Essential: true},
	}
	web := append(api[:3:3], chaos.Container{Name: "web", Role: chaos.Application, Program: "hello", Essential: true})
	instance := func(name string) chaos.Task {
		return chaos.Task{
			Name: name, Family: "api", Containers: api, Fail: "http://127.0.0.1:9090/health/fail",
			Heal: "http://127.0.0.1:9090/health/ok",
		}
	}
	got := setting(t, "chaos")
	if d := cmp.Diff([]chaos.Task{instance("api-1"), instance("api-2"),
		{Name: "web", Family: "web", Entry: true, Containers: web}, instance("api-3"), instance("api-4")},
		got.Topology.Tasks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Name() != "chaos" || got.traffic != (file.Traffic{Task: "web", Port: 8080, Rate: 20}) {
		t.Errorf("%s, traffic %+v", got.Name(), got.traffic)
	}
	var names []string
	rolling, err := file.Load(filepath.Join(testkit.Root(), "examples", "rolling-update"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewChaosSetup(rolling); err == nil ||
		!strings.HasPrefix(err.Error(), "chaos needs a scenario with consul.authMethods") {
		t.Errorf("one with a controller: %v", err)
	}
	delete(rolling.Tasks, "controller")
	rolling.Consul.AuthMethods = []file.AuthMethod{{}}
	many, err := NewChaosSetup(rolling)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range many.Topology.Tasks { // it has eight, for later
		names = append(names, task.Name)
	}
	if d := cmp.Diff([]string{"api-1", "api-2", "api-3", "api-4", "web"}, names); d != "" {
		t.Errorf("of eight (-want +got):\n%s", d)
	}
}

func TestTakeReportsMissingSteps(t *testing.T) {
	t.Parallel()
	f, err := file.Load(filepath.Join(testkit.Root(), "examples", "chaos"))
	if err != nil {
		t.Fatal(err)
	}
	whole := *f
	f.Steps = f.Steps[:3]
	if _, err := NewChaosSetup(f); err == nil ||
		err.Error() != "chaos needs a scenario with a traffic step: where requests enter" {
		t.Errorf("without traffic: %v", err)
	}
	whole.Tasks = map[string]file.Task{"web": whole.Tasks["web"]}
	whole.Steps = []file.Step{{Traffic: &file.Traffic{Task: "web", Port: 8080, Rate: 1}}}
	if _, err := NewChaosSetup(&whole); err == nil ||
		err.Error() != "chaos needs a scenario with tasks that others call" {
		t.Errorf("without tasks: %v", err)
	}
}

// What is printed has to be a part of a scenario file that can be run.
func TestAScheduleCanBePutIntoAScenarioFile(t *testing.T) {
	t.Parallel()
	s := setting(t, "chaos")
	sched := chaos.Schedule{For: 30 * time.Second, Events: []chaos.Event{
		{At: time.Second, For: 2500 * time.Millisecond, Unhealthy: "api-2"},
		{At: 2 * time.Second, Fault: &chaos.Fault{Kill: &chaos.Kill{Task: "api-1", Container: "sidecar-proxy",
			Process: "envoy"}}, By: "api-r1", Instead: "api-1"},
		{At: 10 * time.Second, Stop: "api-3"},
	}}
	text, err := s.YAML(sched)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "shortest.yaml", []byte(text))
	loaded := load(t, text)
	if d := cmp.Diff(s.scenario(sched).Steps, loaded.Steps, cmp.AllowUnexported(file.EndTraffic{})); d != "" {
		t.Errorf("steps (-made +read):\n%s", d)
	}
}

// load reads the example with these tasks and steps in place of its own.
func load(t *testing.T, text string) *file.Scenario {
	t.Helper()
	whole, err := os.ReadFile(filepath.Join(testkit.Root(), "examples", "chaos", "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(whole), "\ntasks:")
	_, checks, _ := strings.Cut(string(whole), "\nchecks:")
	path := filepath.Join(t.TempDir(), file.FileName)
	if err := os.WriteFile(path, []byte(before+"\n"+text+"\nchecks:"+checks), 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, err := file.Load(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return loaded
}

func TestEveryScriptIsAScenario(t *testing.T) {
	t.Parallel()
	s := setting(t, "chaos")
	for seed := range uint64(30) {
		sched := s.Generate(seed, time.Minute)
		if len(sched.Events) == 0 {
			t.Errorf("seed %d: no events", seed)
		}
		text, err := s.YAML(sched)
		if err != nil {
			t.Fatal(err)
		}
		load(t, text)
	}
}

func TestSummaryAndTotals(t *testing.T) {
	t.Parallel()
	r := &ChaosResult{
		Schedule: chaos.Schedule{
			Events: []chaos.Event{
				{At: 2 * time.Second, Stop: "api-1"}, {At: 3 * time.Second, Fault: &chaos.Fault{Server: chaos.Down}},
			},
		},
		Report: &Report{Answered: 100, Failed: 2, Elapsed: 90 * time.Second, LogDir: "logs"},
		Verdict: chaos.Verdict{
			Violations: []chaos.Violation{
				{Invariant: chaos.NoRequestFails, At: 4 * time.Second, Text: "503"},
				{Invariant: chaos.Latched, Task: "api-1", At: 5 * time.Second, Text: "again"},
			},
			Judged:  0.76,
			Allowed: map[string]int{"link: traffic exceeds its link's bandwidth (TCP)": 1},
		},
	}
	v := r.Summary(7)
	v.Shortest, v.Reruns = "steps: []\n", 3
	const text = `
Chaos, seed 7: seconds after the traffic began
  2.00s stop api-1
  3.00s Consul server down
1 lost requests are explained by link: traffic exceeds its link's bandwidth (TCP)
76 % of the requests were judged: a lost one would have been a violation
VIOLATED at 4.00s: no request fails: 503
VIOLATED at 5.00s: api-1 no instance in traffic after its TERM: again
The shortest schedule found in 3 runs, in place of the scenario's tasks and steps:

steps: []
`
	if d := cmp.Diff(text, v.text()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got, want := v.Line(), "seed 7                      2 events     100 answered     2 failed   76 % judged  "+
		"  90.0s  FAILED: 503\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var totals Totals
	totals.Add(v)
	v.Seed, v.Violations = 8, nil
	totals.Add(v)
	var b strings.Builder
	if err := totals.Write(&b, false); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "2 runs in 3m0s: 200 requests answered, 4 failed; events: 2 server, 2 stop; violated "+
		"by 1 seeds [7]\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A broken proxy costs hundreds of requests: only the first are printed.
func TestManyViolationsAreCounted(t *testing.T) {
	t.Parallel()
	var v Summary
	for range 12 {
		v.Violations = append(v.Violations, Violation{Invariant: chaos.NoRequestFails, Text: "503"})
	}
	got := v.text()
	if n := strings.Count(got, ": no request fails: 503\n"); n != 10 ||
		!strings.HasSuffix(got, "VIOLATED 2 times more: no request fails\n") {
		t.Errorf("reported %d times:\n%s", n, got)
	}
}
