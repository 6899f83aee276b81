package clientagent

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/workload"
)

const sec = time.Second

func TestNextPhase(t *testing.T) {
	t.Parallel()
	b := workload.StopBudget{Leave: 20 * sec, KillAgent: 27 * sec}
	alone, left := stage{siblingsStopped: true}, stage{siblingsStopped: true, leaveKnown: true}
	for _, tt := range []struct {
		name  string
		now   phase
		since time.Duration
		known stage
		want  phase
	}{
		{"no TERM, whatever else", serving, time.Hour, left, serving},
		{"others run", waiting, 19 * sec, stage{}, waiting},
		{"others have stopped", waiting, 0, alone, leaving},
		{"others run on", waiting, 20 * sec, stage{}, leaving},
		{"long after", waiting, time.Hour, stage{}, leaving}, // TERM before KILL, always
		{"the agent leaves", leaving, 26 * sec, alone, leaving},
		{"the servers know", leaving, sec, left, exiting},
		{"the agent stays", leaving, 27 * sec, alone, killed},
		{"the servers know, but it is too late", leaving, 27 * sec, left, killed},
		{"the second TERM", exiting, 26 * sec, left, exiting},
		{"the agent stays after the second TERM", exiting, 27 * sec, left, killed},
		{"killed once", killed, time.Hour, left, killed},
	} {
		if got := next(b, tt.now, tt.since, tt.known); got != tt.want {
			t.Errorf("%s: phase %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A phase that nothing ends must not set a timer, or the loop would spin.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := workload.StopBudget{Leave: 20 * sec, KillAgent: 27 * sec}
	for p, want := range map[phase]time.Duration{waiting: 20 * sec, leaving: 27 * sec, exiting: 27 * sec} {
		if at, bounded := deadline(b, p); at != want || !bounded {
			t.Errorf("phase %d: %s, %v", p, at, bounded)
		}
	}
	for _, p := range []phase{serving, killed} {
		if _, bounded := deadline(b, p); bounded {
			t.Errorf("phase %d is bounded", p)
		}
	}
}
