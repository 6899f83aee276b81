package change_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/change"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

func TestBetween(t *testing.T) {
	t.Parallel()
	at, earlier := time.Unix(100, 0), time.Unix(90, 0)
	code := 7
	old := scheduler.View{KnownStatus: "RUNNING", DesiredStatus: "RUNNING", Containers: []scheduler.ContainerView{{Name: "app", KnownStatus: "RUNNING"}, {Name: "side", KnownStatus: "RUNNING"}}}
	now := scheduler.View{
		KnownStatus: "STOPPED", DesiredStatus: "STOPPED", StopCode: "UserInitiated", StoppedReason: "why",
		Containers: []scheduler.ContainerView{
			{Name: "app", KnownStatus: "STOPPED", ExitCode: &code, FinishedAt: earlier},
			{Name: "side", KnownStatus: "STOPPED", Reason: "because"},
		},
	}
	want := []change.Event{
		{At: earlier, Task: "a", Container: "app", What: "status", Value: "STOPPED", Detail: "exit code 7"},
		{At: at, Task: "a", Container: "side", What: "status", Value: "STOPPED", Detail: "because"},
		{At: at, Task: "a", What: "desired", Value: "STOPPED", Detail: "why"},
		{At: at, Task: "a", What: "status", Value: "STOPPED", Detail: "UserInitiated: why"},
	}
	if diff := cmp.Diff(want, change.Between("a", old, now, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := change.Between("a", now, now, at); got != nil {
		t.Errorf("nothing has changed, and it tells %v", got)
	}
}
