package entrypoint

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/workload"
)

// show writes actions as text, without the notes.
func show(acts []action) string {
	var words []string
	for _, a := range acts {
		switch a := a.(type) {
		case forward:
			words = append(words, "forward "+a.signal.String())
		case terminate:
			words = append(words, "TERM")
		case kill:
			words = append(words, "KILL")
		case drain:
			words = append(words, "drain")
		case read:
			words = append(words, fmt.Sprintf("read %d", a.turn))
		case wake:
			words = append(words, "wake "+a.after.String())
		}
	}
	return strings.Join(words, ", ")
}

var errNoNews = errors.New("no news")

func term() event { return signalled{syscall.SIGTERM} }
func intr() event { return signalled{syscall.SIGINT} }

func runs(turn int, names ...string) event {
	return answered{turn, observation{stopping: true, running: names}}
}

// step is one event and the actions it must lead to.
type step struct {
	event event
	want  string
}

func TestEnvoyPolicy(t *testing.T) {
	t.Parallel()
	withDrain := envoyConfig{canDrain: true, killGrace: 10 * time.Second}
	for _, c := range []struct {
		name   string
		config envoyConfig
		steps  []step
	}{
		{"no admin address: nothing to do before TERM", envoyConfig{}, []step{{began{}, ""}}},
		{"before TERM one read per second", withDrain, []step{
			{began{}, "wake 1s"},
			{woke{}, "read 1"},
			{answered{1, observation{running: []string{"app"}}}, "wake 1s"},
			{woke{}, "read 2"},
			{unanswered{2, errNoNews}, "wake 1s"},
			{woke{}, "read 3"},
		}},
		{"a task without running applications does not end Envoy before TERM", withDrain, []step{
			{began{}, "wake 1s"},
			{woke{}, "read 1"},
			{answered{1, observation{}}, "wake 1s"},
		}},
		{"drains when the task is stopping, again at TERM", withDrain, []step{
			{began{}, "wake 1s"},
			{woke{}, "read 1"},
			{runs(1, "app"), "drain"},
			{term(), "drain, wake 125ms"},
			{woke{}, "read 3"},
			{runs(3, "app"), "wake 125ms"},
			{woke{}, "read 4"},
			{runs(4), "TERM, wake 10s"},
			{woke{}, "KILL"},
		}},
		{"TERM is never forwarded, others always", withDrain, []step{
			{intr(), "forward interrupt"},
			{term(), "drain, wake 125ms"},
			{term(), ""},
			{intr(), "forward interrupt"},
			{woke{}, "read 2"},
			{runs(2), "TERM, wake 10s"},
			{term(), ""},
			{intr(), "forward interrupt"},
			{signalled{syscall.SIGQUIT}, "forward quit"},
		}},
		{"an answer from before TERM decides nothing", withDrain, []step{
			{began{}, "wake 1s"},
			{woke{}, "read 1"},
			{term(), "drain, wake 125ms"},
			{runs(1), ""},
			{unanswered{1, errNoNews}, ""},
			{woke{}, "read 3"},
			{runs(3, "app"), "wake 125ms"},
		}},
		{"no news keeps Envoy", withDrain, []step{
			{term(), "drain, wake 125ms"},
			{woke{}, "read 2"},
			{unanswered{2, errNoNews}, "wake 125ms"},
			{woke{}, "read 3"},
			{unanswered{3, errNoNews}, "wake 125ms"},
			{woke{}, "read 4"},
			{runs(4, "app"), "wake 125ms"},
		}},
		{"a gateway has no applications", withDrain, []step{
			{term(), "drain, wake 125ms"},
			{woke{}, "read 2"},
			{runs(2), "TERM, wake 10s"},
		}},
		{"no drain without an address, no KILL without a grace", envoyConfig{}, []step{
			{term(), "wake 125ms"},
			{woke{}, "read 2"},
			{runs(2), "TERM"},
			{runs(2), ""},
			{unanswered{2, errNoNews}, ""},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var state envoyState
			for i, s := range c.steps {
				var acts []action
				if state, acts = c.config.policy(state, s.event); show(acts) != s.want {
					t.Errorf("step %d: %T gave %q, want %q", i, s.event, show(acts), s.want)
				}
			}
		})
	}
}

func TestEnvoyPolicyLogsChangesOnly(t *testing.T) {
	t.Parallel()
	var state envoyState
	var acts []action
	for i, s := range []struct {
		event event
		want  string
	}{
		{unanswered{0, errNoNews}, "task metadata cannot be read, envoy keeps running"},
		{unanswered{0, errNoNews}, ""},
		{answered{0, observation{}}, "task metadata can be read again"},
		{answered{0, observation{}}, ""},
		{term(), "got TERM, envoy keeps running until the applications have stopped"},
		{runs(1, "a", "b"), "waiting for applications"},
		{runs(1, "a", "b"), ""},
		{runs(1, "b"), "waiting for applications"},
		{runs(1), "all applications have stopped, terminating envoy"},
	} {
		state, acts = envoyConfig{}.policy(state, s.event)
		var notes []string
		for _, a := range acts {
			if n, ok := a.(note); ok {
				notes = append(notes, n.text)
			}
		}
		if got := strings.Join(notes, ", "); got != s.want {
			t.Errorf("step %d logged %q, want %q", i, got, s.want)
		}
	}
}

func TestAppPolicy(t *testing.T) {
	t.Parallel()
	delayed := appConfig{delay: 5 * time.Second}
	for _, c := range []struct {
		name   string
		config appConfig
		steps  []step
	}{
		{"the first TERM waits, the second does not", delayed, []step{
			{began{}, ""},
			{term(), "wake 5s"},
			{term(), "forward terminated"},
			{woke{}, "TERM"},
			{term(), "forward terminated"},
			{woke{}, ""},
		}},
		{"other signals never wait", delayed, []step{
			{intr(), "forward interrupt"},
			{term(), "wake 5s"},
			{intr(), "forward interrupt"},
			{woke{}, "TERM"},
			{intr(), "forward interrupt"},
		}},
		{"weakness 6: delay 0 delivers TERM at once", appConfig{}, []step{
			{term(), "TERM"},
			{term(), "forward terminated"},
		}},
		{"a negative delay is none", appConfig{delay: -time.Second}, []step{{term(), "TERM"}}},
		{"-compat swallows TERM without a delay", appConfig{compat: true}, []step{
			{term(), ""},
			{term(), "forward terminated"},
		}},
		{"-compat changes nothing with a delay", appConfig{delay: time.Second, compat: true}, []step{
			{term(), "wake 1s"},
			{woke{}, "TERM"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var state appState
			for i, s := range c.steps {
				var acts []action
				if state, acts = c.config.policy(state, s.event); show(acts) != s.want {
					t.Errorf("step %d: %T gave %q, want %q", i, s.event, show(acts), s.want)
				}
			}
		})
	}
}

// The delay is not the pause before another attempt.
func TestAppPolicyLogsTheDelayAsSuch(t *testing.T) {
	t.Parallel()
	_, acts := appConfig{delay: 5 * time.Second}.policy(appServing, term())
	want := info("got TERM, holding it back", "delay", 5*time.Second)
	if n, ok := acts[0].(note); !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", acts[0], want)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	container := func(name, kind, desired, known string) workload.Container {
		return workload.Container{Name: name, Type: kind, DesiredStatus: desired, KnownStatus: known}
	}
	for _, c := range []struct {
		name       string
		containers []workload.Container
		want       string
	}{
		{"none listed", nil, ""},
		{"running", []workload.Container{container("app", "NORMAL", "RUNNING", "RUNNING")}, "app"},
		{"told to stop", []workload.Container{container("app", "NORMAL", "STOPPED", "RUNNING")}, "app"},
		{"ended by itself", []workload.Container{container("app", "NORMAL", "RUNNING", "STOPPED")}, "app"},
		{"stopped", []workload.Container{container("app", "NORMAL", "STOPPED", "STOPPED")}, ""},
		{"in any order", []workload.Container{
			container("b", "NORMAL", "STOPPED", "RUNNING"),
			container("a", "NORMAL", "STOPPED", "RUNNING"),
		}, "a b"},
		{"weakness 3: pause, router and our own do not count", []workload.Container{
			container("~internal~ecs~pause", "CNI_PAUSE", "RESOURCES_PROVISIONED", "RESOURCES_PROVISIONED"),
			container("log-router", "NORMAL", "STOPPED", "RUNNING"),
			container("sidecar-proxy", "NORMAL", "STOPPED", "RUNNING"),
			container("consul-client", "NORMAL", "STOPPED", "RUNNING"),
			container("consul-ecs-health-sync", "NORMAL", "STOPPED", "RUNNING"),
			container("consul-ecs-mesh-init", "NORMAL", "STOPPED", "STOPPED"),
			container("app", "NORMAL", "STOPPED", "STOPPED"),
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := observe(workload.Task{Containers: c.containers}, []string{"log-router"})
			if strings.Join(got.running, " ") != c.want {
				t.Errorf("running %v, want %q", got.running, c.want)
			}
		})
	}
	if !observe(workload.Task{DesiredStatus: "STOPPED"}, nil).stopping || observe(workload.Task{DesiredStatus: "RUNNING"}, nil).stopping {
		t.Error("stopping does not follow the task's desired status")
	}
}
