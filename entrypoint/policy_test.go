package entrypoint

import (
	"context"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// show writes actions as text, without the notes.
func show(acts []action) string {
	var words []string
	for _, a := range acts {
		switch a := a.(type) {
		case forward:
			words = append(words, "forward "+a.signal.String())
		case signalGroup:
			words = append(words, strings.TrimPrefix(unix.SignalName(a.signal), "SIG"))
		case drain:
			words = append(words, "drain")
		case awaitTaskStopping:
			words = append(words, "await task")
		case awaitAppsStopped:
			words = append(words, "await apps")
		case awaitCallersGone:
			words = append(words, "await callers")
		case wake:
			words = append(words, "wake "+a.after.String())
		}
	}
	return strings.Join(words, ", ")
}

func term() event { return signalled{syscall.SIGTERM} }
func intr() event { return signalled{syscall.SIGINT} }

// step is one event and the actions it must lead to.
type step struct {
	event event
	want  string
}

func TestEnvoyPolicy(t *testing.T) {
	t.Parallel()
	drain := func(context.Context) error { return nil }
	withDrain := Envoy{Drain: drain, KillGrace: 10 * time.Second}
	for _, c := range []struct {
		name   string
		config Envoy
		steps  []step
	}{
		{"no admin address: nothing to do before TERM", Envoy{}, []step{{started{}, ""}}},
		{"drains when the task is stopping", withDrain, []step{
			{started{}, "await task"},
			{taskStopping{}, "drain"},
			{term(), "await apps"},
			{appsStopped{}, "TERM, wake 10s"},
			{woke{}, "KILL"},
		}},
		{"drains at TERM when that comes first", withDrain, []step{
			{started{}, "await task"},
			{term(), "await apps, drain"},
			{taskStopping{}, ""}, // sent before TERM
			{appsStopped{}, "TERM, wake 10s"},
		}},
		{"TERM is never forwarded, others always", withDrain, []step{
			{intr(), "forward interrupt"},
			{term(), "await apps, drain"},
			{term(), ""},
			{intr(), "forward interrupt"},
			{appsStopped{}, "TERM, wake 10s"},
			{term(), ""},
			{intr(), "forward interrupt"},
			{signalled{syscall.SIGQUIT}, "forward quit"},
		}},
		{"a gateway's callers go first", Envoy{Drain: drain, KillGrace: 10 * time.Second, Callers: &Callers{}, MaxDelay: 5 * time.Second}, []step{
			{started{}, "await task"},
			{taskStopping{}, "drain"},
			{callersGone{}, ""},
			{term(), "wake 5s, await callers"},
			{taskStopping{}, ""}, // sent before TERM
			{term(), ""},
			{intr(), "forward interrupt"},
			{callersGone{}, "await apps"},
			{woke{}, ""}, // the end of the wait for callers
			{appsStopped{}, "TERM, wake 10s"},
			{woke{}, "KILL"},
		}},
		{"a gateway whose callers stay", Envoy{Callers: &Callers{}, MaxDelay: 5 * time.Second}, []step{
			{term(), "wake 5s, await callers"},
			{appsStopped{}, ""},
			{woke{}, "await apps"},
			{callersGone{}, ""},
			{appsStopped{}, "TERM"},
		}},
		{"no KILL without a grace by the wake of the wait for callers", Envoy{Callers: &Callers{}, MaxDelay: 5 * time.Second}, []step{
			{term(), "wake 5s, await callers"},
			{callersGone{}, "await apps"},
			{appsStopped{}, "TERM"},
			{woke{}, ""},
		}},
		{"no drain without an address, no KILL without a grace", Envoy{}, []step{
			{term(), "await apps"},
			{appsStopped{}, "TERM"},
			{appsStopped{}, ""},
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

func TestAppPolicy(t *testing.T) {
	t.Parallel()
	delayed := App{Delay: 5 * time.Second}
	for _, c := range []struct {
		name   string
		config App
		steps  []step
	}{
		{"the first TERM waits, the second does not", delayed, []step{
			{started{}, ""},
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
		{"delay 0 delivers TERM at once", App{}, []step{
			{term(), "TERM"},
			{term(), "forward terminated"},
		}},
		{"callers end an automatic delay", App{Delay: 5 * time.Second, Callers: &Callers{}}, []step{
			{term(), "wake 5s, await callers"},
			{term(), "forward terminated"},
			{callersGone{}, "TERM"},
			{woke{}, ""},
		}},
		{"an automatic delay ends while callers still call", App{Delay: 5 * time.Second, Callers: &Callers{}}, []step{
			{callersGone{}, ""},
			{term(), "wake 5s, await callers"},
			{intr(), "forward interrupt"},
			{woke{}, "TERM"},
			{callersGone{}, ""},
		}},
		{"-compat swallows TERM without a delay", App{Compat: true}, []step{
			{term(), ""},
			{term(), "forward terminated"},
		}},
		{"-compat changes nothing with a delay", App{Delay: time.Second, Compat: true}, []step{
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

// TestPoliciesLogWhatAcceptanceTestsLookFor: those of hashicorp's Terraform modules.
func TestPoliciesLogWhatAcceptanceTestsLookFor(t *testing.T) {
	t.Parallel()
	_, acts := App{Delay: 10 * time.Second}.policy(appServing, term())
	want := info("received sigterm. waiting 10s before terminating application.") // and no pairs after the period
	if n, ok := acts[0].(note); !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", acts[0], want)
	}
	_, acts = Envoy{}.policy(envoyState{}, term())
	if n, ok := acts[0].(note); !ok || n.text != "waiting for application container(s) to stop" {
		t.Errorf("got %+v", acts[0])
	}
}
