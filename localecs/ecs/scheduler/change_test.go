package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	at, earlier := time.Unix(100, 0), time.Unix(90, 0)
	code := 7
	old := scheduler.View{
		KnownStatus: "RUNNING", DesiredStatus: "RUNNING", Containers: []scheduler.ContainerView{
			{Name: "app", KnownStatus: "RUNNING"}, {Name: "side", KnownStatus: "RUNNING"},
		},
	}
	now := scheduler.View{
		KnownStatus: "STOPPED", DesiredStatus: "STOPPED", StopCode: "UserInitiated", StoppedReason: "why",
		Containers: []scheduler.ContainerView{
			{Name: "app", KnownStatus: "STOPPED", ExitCode: &code, FinishedAt: earlier},
			{Name: "side", KnownStatus: "STOPPED", Reason: "because"},
		},
	}
	want := []scheduler.Change{
		{At: earlier, Task: "a", Container: "app", What: "status", Value: "STOPPED", Detail: "exit code 7"},
		{At: at, Task: "a", Container: "side", What: "status", Value: "STOPPED", Detail: "because"},
		{At: at, Task: "a", What: "desired", Value: "STOPPED", Detail: "why"},
		{At: at, Task: "a", What: "status", Value: "STOPPED", Detail: "UserInitiated: why"},
	}
	if diff := cmp.Diff(want, scheduler.Changes("a", old, now, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := scheduler.Changes("a", now, now, at); got != nil {
		t.Errorf("nothing has changed, and it reports %v", got)
	}
}

func TestBetweenReportsActionsOfECS(t *testing.T) {
	t.Parallel()
	at, once, twice := time.Unix(100, 0), 1, 2
	running := scheduler.ContainerView{Name: "app", KnownStatus: "RUNNING", RestartCount: &once, FinishedAt: at}
	restarted, asked, killed := running, running, running
	restarted.RestartCount, restarted.FinishedAt = &twice, at.Add(time.Second)
	asked.SignalledAt = at.Add(2 * time.Second)
	killed.SignalledAt, killed.KilledAt = asked.SignalledAt, at.Add(3*time.Second)
	for _, c := range []struct {
		name     string
		old, now scheduler.ContainerView
		want     []scheduler.Change
	}{
		{"nothing", running, running, nil},
		{"started again", running, restarted,
			[]scheduler.Change{{At: at.Add(time.Second), Task: "a", Container: "app", What: "restart", Value: "2"}}},
		{"asked to stop", running, asked,
			[]scheduler.Change{{At: at.Add(2 * time.Second), Task: "a", Container: "app", What: "signal",
				Value: "TERM"}}},
		{"killed", asked, killed,
			[]scheduler.Change{{At: at.Add(3 * time.Second), Task: "a", Container: "app", What: "signal", Value: "KILL",
				Detail: "stop timeout elapsed"}}},
	} {
		old, now := scheduler.View{Containers: []scheduler.ContainerView{c.old}}, scheduler.View{
			Containers: []scheduler.ContainerView{c.now},
		}
		if diff := cmp.Diff(c.want, scheduler.Changes("a", old, now, at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
