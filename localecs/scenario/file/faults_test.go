package file

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// withFaults is a scenario with a schedule and a step that has one.
const withFaults = `
name: x
seed: 18446744073709551615
tasks: {web: web.json}
images: {i: {programs: {}}}
consul: {image: i}
faults:
- {at: 2s, for: 1m, endpoint: {name: metadata, task: web, status: 429, share: 0.25}}
- {kill: {task: web, container: app, process: envoy}}
steps:
- start: [web]
- faults: [{at: 500ms, for: 2s, endpoint: {name: sts, skew: -20m}}, {kill: {task: web, container: ap}}]
- await: {faultsOver: true, within: 30s}
- stop: [web]
`

func TestAScheduleIsRead(t *testing.T) {
	t.Parallel()
	s, err := parseScenario([]byte(withFaults))
	if err != nil {
		t.Fatal(err)
	}
	want := []chaos.Fault{
		{At: 2 * time.Second, For: time.Minute,
			Endpoint: &chaos.Endpoint{Name: chaos.Metadata, Task: "web", Status: 429, Share: 0.25}},
		{Kill: &chaos.Kill{Task: "web", Container: "app", Process: "envoy"}},
	}
	if diff := cmp.Diff(want, s.Faults); diff != "" || s.Seed != 1<<64-1 {
		t.Errorf("seed %d, faults (-want +got):\n%s", s.Seed, diff)
	}
	want = []chaos.Fault{
		{At: 500 * time.Millisecond, For: 2 * time.Second,
			Endpoint: &chaos.Endpoint{Name: chaos.STS, Skew: -20 * time.Minute}},
		{Kill: &chaos.Kill{Task: "web", Container: "ap"}},
	}
	if diff := cmp.Diff(want, s.Steps[1].Faults); diff != "" {
		t.Errorf("a step's faults (-want +got):\n%s", diff)
	}
	// Containers are looked at when the definitions were read.
	var got []string
	for _, err := range s.FaultProblems(map[string][]string{"web": {"app", "proxy"}}, false) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff([]string{`steps[1]: faults[1].kill.container: "ap": want one of app, proxy`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A service's tasks are known by their names only.
func TestFaultsOfAServicesTask(t *testing.T) {
	t.Parallel()
	for task, want := range map[string]string{
		"api-2": "",
		"api":   `steps[0]: faults: faults[0].kill: there is no task "api"`,
		"web-1": `steps[0]: faults: faults[0].kill: there is no task "web-1"`,
	} {
		got := ""
		_, err := parseScenario([]byte(aroundServices +
			"services: {api: {definition: api.json, count: 2}}\nsteps:\n- faults: [{kill: {task: " + task +
			", container: app}}]\n"))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", task, got, want)
		}
	}
}
