package localecs

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// restarting gives a container a restart policy with the shortest period that
// ECS allows: one second here, by TimeScale.
func restarting(c taskdef.Container, ignored ...int) taskdef.Container {
	period := 60
	c.RestartPolicy = &taskdef.RestartPolicy{Enabled: true, IgnoredExitCodes: ignored, RestartAttemptPeriod: &period}
	return c
}

func newScaled(t *testing.T) *world {
	t.Helper()
	return newTools(t, func(o *Options) { o.TimeScale = 60 })
}

func TestScenario51RestartAfterThePeriod(t *testing.T) {
	t.Parallel()
	s := newScaled(t).play(t, nil, restarting(helper("a", "exit", "1", "1600ms")))
	s.until("restarted twice", func(v scheduler.View) bool { return *v.Containers[0].RestartCount == 2 })
	testkit.Eventually(t, "a sample of it", func() bool {
		return len(s.seen(func(m sample) bool { n := m.container("a").RestartCount; return n != nil && *n == 2 })) > 0
	})
	counts := map[int]bool{}
	var first time.Time
	for _, m := range s.seen(func(m sample) bool { return m.container("a").StartedAt != nil }) {
		a := m.container("a")
		if first.IsZero() {
			first = *a.StartedAt
		}
		if a.KnownStatus != "RUNNING" || a.DesiredStatus != "RUNNING" || m.KnownStatus != "RUNNING" || a.ExitCode != nil || !a.StartedAt.Equal(first) {
			t.Errorf("task %s, a %+v", m.KnownStatus, a)
		}
		counts[*a.RestartCount] = true
	}
	if !counts[0] || !counts[1] || !counts[2] {
		t.Errorf("samples have RestartCount %v, want 0, 1 and 2", counts)
	}
	// 54: an exit while the task stops is no reason to restart.
	if v := s.end().stopped(); *v.Containers[0].RestartCount > 2 {
		t.Errorf("restarted while stopping: %+v", v.Containers[0])
	}
}

// 52: too early. 53: a code that is ignored.
func TestScenario52And53NoRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]taskdef.Container{
		"too early":    restarting(helper("a", "exit", "1", "0s")),
		"ignored code": restarting(helper("a", "exit", "0", "1600ms"), 0, 7),
	} {
		s := newScaled(t).play(t, nil, c)
		v := s.stopped()
		if a := v.Containers[0]; *a.RestartCount != 0 || a.ExitCode == nil || v.StopCode != "EssentialContainerExited" {
			t.Errorf("%s: %s, %+v", name, v.StopCode, a)
		}
	}
}
