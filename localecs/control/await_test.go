package control_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

var start = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

func code(n int) *int { return &n }

// state returns a task of every kind.
func state() control.State {
	app := func(status, health string) control.Container {
		c := control.Container{
			Container: shapes.Container{Name: "app", LastStatus: status, HealthStatus: health}, Essential: true,
			HealthCheck: true, StartedAt: start,
		}
		if health == "" {
			c.HealthStatus, c.HealthCheck = "UNKNOWN", false
		}
		c.Waiting = map[string]string{"PENDING ": "waits for init SUCCESS", "RUNNING UNHEALTHY": "is UNHEALTHY",
			"RUNNING UNKNOWN": "has no health yet"}[status+" "+health]
		return c
	}
	task := func(name, service, last, desired string, containers ...control.Container) control.Task {
		t := control.Task{Name: name, Task: shapes.Task{
			TaskARN: "arn:task/default/" + name + "-id", TaskDefinitionARN: "arn:task-definition/f-" + name + ":1",
			Group: "service:" + service, LastStatus: last, DesiredStatus: desired,
		}, Containers: containers}
		if last != "PENDING" {
			t.StartedAt = shapes.At(start)
		}
		if desired == "STOPPED" {
			t.StopCode, t.StoppedReason = "UserInitiated", "asked"
		}
		return t
	}
	failed := control.Container{
		Container: shapes.Container{Name: "app", LastStatus: "STOPPED", HealthStatus: "UNKNOWN", ExitCode: code(3)},
		Essential: true, StartedAt: start, FinishedAt: start.Add(time.Second),
	}
	initialized := control.Container{
		Container: shapes.Container{Name: "init", LastStatus: "STOPPED", HealthStatus: "UNKNOWN", ExitCode: code(0)},
	}
	rollout := func(state, reason string) []shapes.Deployment {
		return []shapes.Deployment{{RolloutState: state, RolloutStateReason: reason}}
	}
	return control.State{
		Command: "run",
		Tasks: []control.Task{
			task("good", "", "RUNNING", "RUNNING", app("RUNNING", "HEALTHY")),
			task("ill", "", "RUNNING", "RUNNING", app("RUNNING", "UNHEALTHY")),
			task("young", "", "RUNNING", "RUNNING", app("RUNNING", "UNKNOWN")),
			task("plain", "", "RUNNING", "RUNNING", app("RUNNING", "")),
			task("new", "", "PENDING", "RUNNING", app("PENDING", ""), initialized),
			task("going", "", "RUNNING", "STOPPED", app("RUNNING", "HEALTHY")),
			task("gone", "", "STOPPED", "STOPPED", failed),
			task("api-1", "api", "STOPPED", "STOPPED", failed),
			task("api-2", "api", "RUNNING", "RUNNING", app("RUNNING", "HEALTHY")),
			task("api-3", "api", "RUNNING", "RUNNING", app("RUNNING", "UNKNOWN")),
		},
		Services: []shapes.Service{
			{ServiceName: "api", Status: "ACTIVE", DesiredCount: 2, RunningCount: 2,
				Deployments: rollout("COMPLETED", "")},
			{ServiceName: "slow", Status: "ACTIVE", DesiredCount: 2, PendingCount: 1,
				Deployments: rollout("IN_PROGRESS", "")},
			{ServiceName: "bad", Status: "ACTIVE", DesiredCount: 1, Deployments: rollout("FAILED", "circuit breaker")},
		},
		Planned: []string{"late", "shop"},
		Consul:  &control.Consul{Passing: map[string]int{"web": 2}},
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	const met, never = "met", "never"
	for _, tt := range []struct {
		condition  control.Condition
		name       string
		want, text string
	}{
		{control.Running, "good", met, ""},
		{control.Running, "new", "", "new is PENDING (app waits for init SUCCESS)"},
		{control.Running, "gone", met, ""},
		{control.Running, "late", "", "late has not started yet"},
		{control.Running, "goood", never, "no task goood; did you mean good?"},
		{control.Running, "api", met, ""},
		{control.Running, "slow", "", "no task slow; did you mean shop?"},
		{control.Running, "shop-1", "", "no task shop-1; did you mean shop?"},
		{control.Healthy, "good", met, ""},
		{control.Healthy, "ill", "", "ill is RUNNING (app is UNHEALTHY)"},
		{control.Healthy, "young", "", "young is RUNNING (app has no health yet)"},
		{control.Healthy, "plain", never, "plain has no health check: wait for -running"},
		{control.Healthy, "new", "", "new is PENDING (app waits for init SUCCESS)"},
		{control.Healthy, "going", never, "going is RUNNING, stopping (UserInitiated: asked)"},
		{control.Healthy, "gone", never, "gone is STOPPED (UserInitiated: asked)"},
		{control.Healthy, "api", "", "api-3 is RUNNING (app has no health yet)"},
		{control.Stopped, "gone", met, ""},
		{control.Stopped, "going", "", "going is RUNNING, stopping (UserInitiated: asked)"},
		{control.Stopped, "good", "", "good is RUNNING"},
		{control.Steady, "api", met, ""},
		{control.Steady, "slow", "", "service slow: 0 of 2 running, 1 pending, not steady"},
		{control.Steady, "bad", never, "service bad: 0 of 1 running, 0 pending, failed: deployment : circuit breaker"},
		{control.Steady, "shop", "", "service shop does not exist yet"},
		{control.Steady, "apy", never, "no service apy; did you mean api?"},
		{control.Passing, "web=2", met, ""},
		{control.Passing, "web=3", "", "Consul sends traffic to 2 of 3 instances of web"},
		{control.Passing, "api", "", "Consul sends traffic to 0 of 1 instances of api"},
	} {
		targets, err := control.ParseTargets(tt.condition, []string{tt.name})
		if err != nil {
			t.Fatal(err)
		}
		o := control.Evaluate(targets, state())
		got := ""
		switch {
		case o.Met:
			got = met
		case o.Over:
			got = never
		}
		if got != tt.want || o.Text("") != tt.text {
			t.Errorf("%s %s: %q %q, want %q %q", tt.condition, tt.name, got, o.Text(""), tt.want, tt.text)
		}
	}
}

// At the end nothing comes any more, also what was still possible.
func TestNothingComesAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := state()
	s.Ended = true
	for condition, name := range map[control.Condition]string{control.Running: "late", control.Healthy: "ill",
		control.Stopped: "good", control.Steady: "shop", control.Passing: "api"} {
		if o := control.Evaluate([]control.Target{{Condition: condition, Name: name, Count: 1}}, s); !o.Over || o.Met {
			t.Errorf("%s %s: %q", condition, name, o.Text("the run has ended"))
		}
	}
}

func TestServeHasNeitherPlanNorConsul(t *testing.T) {
	t.Parallel()
	s := control.State{Command: "serve"}
	for condition, want := range map[control.Condition]bool{control.Running: false, control.Steady: false,
		control.Passing: true} {
		if o := control.Evaluate([]control.Target{{Condition: condition, Name: "web", Count: 1}}, s); o.Over != want {
			t.Errorf("%s: %v, %q", condition, o.Over, o.Text(""))
		}
	}
}

func TestAllOfThem(t *testing.T) {
	t.Parallel()
	targets := []control.Target{
		{Condition: control.Healthy, Name: "good"}, {Condition: control.Healthy, Name: "ill"},
		{Condition: control.Healthy, Name: "young"},
	}
	o := control.Evaluate(targets, state())
	const want = "timed out after 1s; ill is RUNNING (app is UNHEALTHY); young is RUNNING (app has no health yet)"
	if o.Met || o.Over {
		t.Errorf("met %v, over %v, %q", o.Met, o.Over, o.Text("timed out after 1s"))
	}
	testkit.Equal(t, `o.Text("timed out after 1s")`, o.Text("timed out after 1s"), want)
	if diff := cmp.Diff(control.Blame{Task: "ill", Container: "app"}, o.Blame); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if o := control.Evaluate(targets[:1], state()); o.Blame != (control.Blame{}) || o.Text("") != "" {
		t.Errorf("nothing is wrong: %+v %q", o.Blame, o.Text(""))
	}
	if o := control.Evaluate([]control.Target{{Condition: control.Steady, Name: "bad"}},
		state()); o.Blame != (control.Blame{}) {
		t.Errorf("%+v", o.Blame)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"web=0": `"web=0": want SERVICE=NUMBER, of 1 or more`,
		"web=x": `"web=x": want SERVICE=NUMBER, of 1 or more`,
		"web=":  `"web=": want SERVICE=NUMBER, of 1 or more`,
	} {
		if _, err := control.ParseTargets(control.Passing, []string{word}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", word, err)
		}
	}
	targets, err := control.ParseTargets(control.Running, []string{"a=b"})
	if err != nil || targets[0].Name != "a=b" {
		t.Errorf("%v, %v", targets, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("web=2")
	f.Add("=")
	f.Fuzz(func(t *testing.T, word string) {
		targets, err := control.ParseTargets(control.Passing, []string{word})
		if valid := len(targets) == 1 && targets[0].Count > 0; err == nil && !valid {
			t.Errorf("%q: %+v", word, targets)
		}
		control.Evaluate(targets, control.State{Command: "run"}).Text("")
	})
}
