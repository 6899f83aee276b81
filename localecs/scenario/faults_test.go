package scenario

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// A scenario whose faults were not made proves nothing, unless it says so.
func TestFaultThatDidNotHappenFailsTheRun(t *testing.T) {
	t.Parallel()
	kill := chaos.Fault{At: time.Second, Kill: &chaos.Kill{Task: "web", Container: "app"}}
	hang := chaos.Fault{For: 3 * time.Second, Endpoint: &chaos.Endpoint{Name: chaos.STS, Hang: true}}
	missed := errors.Join(errMissed, errors.New("it has ended"))
	for _, c := range []struct {
		fault    chaos.Fault
		over     bool
		err      error
		mayMiss  bool
		failure  string
		reported Event
	}{
		{hang, false, nil, false, "", Event{Kind: "fault", Detail: "sts hangs", Text: "sts hangs for 3s"}},
		{hang, true, nil, false, "", Event{Kind: "fault_over", Detail: "sts hangs", Text: "over: sts hangs"}},
		{kill, false, missed, false,
			"fault at 1s: kill -9 web/app: the target of the fault does not exist\nit has ended",
			Event{Kind: "fault", Task: "web", Detail: "kill -9 web/app", Error: missed.Error(),
				Text: "kill -9 web/app: " + missed.Error()}},
		{kill, false, missed, true, "",
			Event{Kind: "fault", Task: "web", Detail: "kill -9 web/app", Error: missed.Error(),
				Text: "kill -9 web/app: " + missed.Error()}},
		{hang, true, io.EOF, true, "fault at 0s: sts hangs: EOF",
			Event{Kind: "fault_over", Detail: "sts hangs", Error: "EOF", Text: "over: sts hangs: EOF"}},
	} {
		out := &recorder{}
		p := &progress{scenario: "x", out: out.Event, record: NewRecording()}
		i := &faultInjector{file: &file.Scenario{Checks: file.Checks{FaultsMayMiss: c.mayMiss}}, progress: p}
		i.changed(c.fault, c.over, c.err)
		got := out.events[0]
		got.Time, got.Seconds, got.Scenario = time.Time{}, 0, ""
		if diff := cmp.Diff(c.reported, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := strings.Join(p.failures, "; "); got != c.failure {
			t.Errorf("failures %q, want %q", got, c.failure)
		}
	}
}

func TestTheEndOfFaultsIsAwaited(t *testing.T) {
	t.Parallel()
	looked := make(chan struct{})
	begin := func(chaos.Fault) (func() error, error) { <-looked; return func() error { return nil }, nil }
	schedule := NewSchedule(begin, func(chaos.Fault, bool, error) {})
	defer schedule.End()
	r := &stepRunner{
		tasks: NewTaskSet(), progress: &progress{}, traffic: &trafficPhases{}, faults: &faultInjector{
			schedule: schedule,
		},
	}
	over := file.Await{FaultsOver: true, Within: testkit.Patience}
	schedule.Add([]chaos.Fault{{For: 50 * time.Millisecond, Server: chaos.Down}, {Server: chaos.Slowed}})
	if holds, got, _ := r.holds(t.Context(), over, 0); holds || got != "2 to come or to end" {
		t.Errorf("holds %v, so far %q", holds, got)
	}
	close(looked)
	if err := r.await(context.Background(), over); err != nil {
		t.Error(err)
	}
	schedule.Add([]chaos.Fault{{At: time.Hour, Server: chaos.Down}})
	over.Within = 10 * time.Millisecond
	if err := r.await(context.Background(), over); err == nil ||
		err.Error() != "await the end of all faults within 10ms: context deadline exceeded" {
		t.Error(err)
	}
}
