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
	for _, tt := range []struct {
		name    string
		now     phase
		since   time.Duration
		awaited bool
		want    phase
	}{
		{"no TERM, whatever else", serving, time.Hour, true, serving},
		{"others run", waiting, 19 * sec, false, waiting},
		{"others have stopped", waiting, 0, true, leaving},
		{"others run on", waiting, 20 * sec, false, leaving},
		{"long after", waiting, time.Hour, false, leaving}, // TERM before KILL, always
		{"the agent leaves", leaving, 26 * sec, false, leaving},
		{"the servers know", leaving, sec, true, exiting},
		{"the agent stays", leaving, 27 * sec, false, killed},
		{"the servers know, but it is too late", leaving, 27 * sec, true, killed},
		{"the second TERM", exiting, 26 * sec, true, exiting},
		{"the agent stays after the second TERM", exiting, 27 * sec, true, killed},
		{"killed once", killed, time.Hour, true, killed},
	} {
		if got := next(b, tt.now, tt.since, tt.awaited); got != tt.want {
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
