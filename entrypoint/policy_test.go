package entrypoint

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
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
		case restart:
			words = append(words, "restart "+a.after.String())
		case exit:
			words = append(words, "exit "+strconv.Itoa(a.code))
		}
	}
	return strings.Join(words, ", ")
}

func term() event { return signalled{syscall.SIGTERM} }
func intr() event { return signalled{syscall.SIGINT} }
func quit() event { return signalled{syscall.SIGQUIT} }

// ended returns the end of the child at a time since the start.
func ended(code int, at time.Duration) event { return exited{code, at} }

// step is one event and the actions it must lead to.
type step struct {
	event event
	want  string
}

func TestEnvoyPolicy(t *testing.T) {
	t.Parallel()
	drain := func(context.Context) error { return nil }
	withDrain := Envoy{Drain: drain, KillGrace: 10 * time.Second}
	again := withDrain
	again.Start = func() (Child, error) { return nil, nil }
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
		{"ends when the servers refuse it", withDrain, []step{
			{started{}, "await task"},
			{refused{}, "TERM, wake 10s"},
			{term(), ""},
			{woke{}, "KILL"},
		}},
		{"a refusal after TERM changes nothing", withDrain, []step{
			{started{}, "await task"},
			{term(), "await apps, drain"},
			{refused{}, ""},
			{appsStopped{}, "TERM, wake 10s"},
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
		{"a gateway's callers go first",
			Envoy{Drain: drain, KillGrace: 10 * time.Second, Callers: &Callers{}, MaxDelay: 5 * time.Second}, []step{
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
		{"no KILL without a grace by the wake of the wait for callers",
			Envoy{Callers: &Callers{}, MaxDelay: 5 * time.Second}, []step{
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
		{"the end is the end without a start", withDrain, []step{{ended(139, time.Hour), "exit 139"}}},
		{"a crash starts envoy again", again, []step{
			{ended(139, time.Hour), "restart 100ms"},
			{restarted{}, ""},
			{ended(1, 2*time.Hour), "restart 100ms"},
		}},
		{"an end without an error is none", again, []step{{ended(0, time.Hour), "exit 0"}}},
		{"three restarts in five minutes", again, []step{
			{ended(1, time.Hour), "restart 100ms"},
			{restarted{}, ""},
			{ended(1, time.Hour+time.Second), "restart 500ms"},
			{restarted{}, ""},
			{ended(1, time.Hour+4*time.Minute), "restart 1s"},
			{restarted{}, ""},
			{ended(7, time.Hour+5*time.Minute-1), "exit 7"},
		}},
		{"a restart is forgotten after five minutes", again, []step{
			{ended(1, time.Hour), "restart 100ms"},
			{restarted{}, ""},
			{ended(1, time.Hour+time.Minute), "restart 500ms"},
			{restarted{}, ""},
			{ended(1, time.Hour+5*time.Minute), "restart 500ms"},
			{restarted{}, ""},
			{ended(1, time.Hour+5*time.Minute), "restart 1s"},
			{restarted{}, ""},
			{ended(1, time.Hour+5*time.Minute), "exit 1"},
		}},
		{"applications that still run keep envoy, whose new listeners drain", again, []step{
			{taskStopping{}, "drain"},
			{ended(139, time.Hour), "restart 100ms"},
			{restarted{}, "drain"},
			{term(), "await apps"},
			{ended(139, time.Hour), "restart 500ms"},
			{restarted{}, "drain"},
			{appsStopped{}, "TERM, wake 10s"},
			{ended(143, time.Hour), "exit 143"},
		}},
		{"no restart after the applications", again, []step{
			{term(), "await apps, drain"},
			{ended(139, time.Hour), "restart 100ms"},
			{appsStopped{}, "exit 139"},
		}},
		{"no restart after a signal that ends envoy", again, []step{
			{intr(), "forward interrupt"},
			{ended(130, time.Hour), "exit 130"},
		}},
		{"a signal that ends envoy during the pause", again, []step{
			{ended(139, time.Hour), "restart 100ms"},
			{signalled{syscall.SIGUSR1}, "forward user defined signal 1"},
			{quit(), "exit 139"},
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
		{"the end is the end", delayed, []step{{ended(139, time.Hour), "exit 139"}}},
		{"-compat swallows TERM without a delay", App{Compat: true}, []step{
			{term(), ""},
			{term(), "forward terminated"},
		}},
		{"-compat changes nothing with a delay", App{Delay: time.Second, Compat: true}, []step{
			{term(), "wake 1s"},
			{woke{}, "TERM"},
		}},
		{"the stop signal waits as TERM does",
			App{Delay: 5 * time.Second, Callers: &Callers{}, StopSignal: syscall.SIGQUIT}, []step{
				{intr(), "forward interrupt"},
				{quit(), "wake 5s, await callers"},
				{quit(), "forward quit"},
				{term(), "forward terminated"},
				{callersGone{}, "QUIT"},
				{quit(), "forward quit"},
				{woke{}, ""},
			}},
		{"TERM waits beside another stop signal", App{Delay: 5 * time.Second, StopSignal: syscall.SIGQUIT}, []step{
			{term(), "wake 5s"},
			{quit(), "forward quit"},
			{woke{}, "TERM"},
		}},
		{"delay 0 delivers the stop signal at once", App{StopSignal: syscall.SIGWINCH}, []step{
			{signalled{syscall.SIGWINCH}, "WINCH"},
			{signalled{syscall.SIGWINCH}, "forward window changed"},
		}},
		{"-compat swallows the stop signal without a delay", App{Compat: true, StopSignal: syscall.SIGQUIT}, []step{
			{quit(), ""},
			{quit(), "forward quit"},
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

// TestAppNamesStopSignalOnce: an application that its image's STOPSIGNAL ends too early.
func TestAppNamesStopSignalOnce(t *testing.T) {
	t.Parallel()
	usr1, winch := signalled{syscall.SIGUSR1}, signalled{syscall.SIGWINCH}
	for _, c := range []struct {
		name   string
		config App
		events []event
		want   string
	}{
		{"QUIT", App{Delay: time.Second}, []event{quit(), quit()}, "SIGQUIT is delivered at once"},
		{"one line of all", App{Delay: time.Second}, []event{winch, usr1, quit()}, "SIGWINCH is delivered at once"},
		{"not INT and HUP", App{Delay: time.Second}, []event{intr(), signalled{syscall.SIGHUP}, usr1},
			"SIGUSR1 is delivered at once"},
		{"not after TERM", App{Delay: time.Second}, []event{term(), quit()}, ""},
		{"not without a delay", App{}, []event{quit()}, ""},
		{"not beside -stop-signal", App{Delay: time.Second, StopSignal: syscall.SIGQUIT}, []event{usr1}, ""},
	} {
		var state appState
		var warnings []string
		for _, e := range c.events {
			var acts []action
			state, acts = c.config.policy(state, e)
			for _, a := range acts {
				if n, ok := a.(note); ok && n.level == hclog.Warn {
					before, _, _ := strings.Cut(n.text, ":")
					warnings = append(warnings, before)
				}
			}
		}
		if got := strings.Join(warnings, "; "); got != c.want {
			t.Errorf("%s: warned %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPoliciesLogWhatAcceptanceTestsLookFor: those of hashicorp's Terraform modules.
func TestPoliciesLogWhatAcceptanceTestsLookFor(t *testing.T) {
	t.Parallel()
	_, acts := App{Delay: 10 * time.Second}.policy(appState{}, term())
	want := info("received sigterm. waiting 10s before terminating application.") // and no pairs after the period
	if n, ok := acts[0].(note); !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v, want %+v", acts[0], want)
	}
	_, acts = Envoy{}.policy(envoyState{}, term())
	if n, ok := acts[0].(note); !ok || n.text != "waiting for application container(s) to stop" {
		t.Errorf("got %+v", acts[0])
	}
}
