package cluster

import (
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// restarting gives a container a restart policy with the shortest period that
// ECS allows: one second here, by TimeScale.
func restarting(c taskdef.Container, ignored ...int) taskdef.Container {
	period := 60
	c.RestartPolicy = &taskdef.RestartPolicy{Enabled: true, IgnoredExitCodes: ignored, RestartAttemptPeriod: &period}
	return c
}

func newScaled(t *testing.T) *fixture {
	t.Helper()
	return newTools(t, func(o *Options) { o.TimeScale = 60 })
}

func TestConformanceRestartAfterThePeriod(t *testing.T) {
	t.Parallel()
	s := newScaled(t).startTask(t, nil, restarting(helper("a", "run", "0s", "1")))
	// ran waits until its run after so many restarts has lasted the period.
	ran := func(restarts int) {
		t.Helper()
		testkit.Eventually(t, "a has run the period", func() bool {
			starts := times(s.log("a"), "ready")
			return len(starts) == restarts+1 && time.Since(starts[restarts]) > 2*time.Second && s.container("a").KnownStatus == "RUNNING" &&
				len(s.seen(func(m sample) bool { n := m.container("a").RestartCount; return n != nil && *n == restarts })) > 0
		})
	}
	for restarts := range 2 {
		ran(restarts)
		if err := s.Kill("a", "", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ran(2)
	var first time.Time
	for _, m := range s.seen(func(m sample) bool { return m.container("a").StartedAt != nil }) {
		a := m.container("a")
		if first.IsZero() {
			first = *a.StartedAt
		}
		testkit.Equal(t, "status of a", [2]string{a.KnownStatus, a.DesiredStatus}, [2]string{"RUNNING", "RUNNING"})
		if m.KnownStatus == "STOPPED" || a.ExitCode != nil {
			t.Errorf("task %s, a %+v", m.KnownStatus, a)
		}
		if !a.StartedAt.Equal(first) {
			t.Errorf("a started at %s, first at %s", a.StartedAt, first)
		}
	}
	// An exit while the task stops is no reason to restart.
	if v := s.end().stopped(); *v.Containers[0].RestartCount != 2 || s.code("a") != 1 {
		t.Errorf("restarted while stopping: %+v", v.Containers[0])
	}
}
