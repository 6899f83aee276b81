package clientagent

import (
	"testing"
	"time"
)

const sec = time.Second

func TestPlan(t *testing.T) {
	t.Parallel()
	for stop, want := range map[time.Duration]schedule{
		30 * sec:  {20 * sec, 27500 * time.Millisecond, 29500 * time.Millisecond},
		120 * sec: {110 * sec, 117500 * time.Millisecond, 119500 * time.Millisecond},
		10 * sec:  {0, 7500 * time.Millisecond, 9500 * time.Millisecond},
		2 * sec:   {0, 1500 * time.Millisecond, 1900 * time.Millisecond},
	} {
		if got := plan(stop); got != want {
			t.Errorf("plan(%s) = %v, want %v", stop, got, want)
		}
	}
}

func TestNextPhase(t *testing.T) {
	t.Parallel()
	s := schedule{siblings: 20 * sec, leave: 27 * sec, done: 29 * sec}
	for _, tt := range []struct {
		name  string
		now   phase
		since time.Duration
		alone bool
		want  phase
	}{
		{"no TERM, whatever else", serving, time.Hour, true, serving},
		{"others run", waiting, 19 * sec, false, waiting},
		{"others have stopped", waiting, 0, true, leaving},
		{"others run on", waiting, 20 * sec, false, leaving},
		{"long after", waiting, time.Hour, false, leaving}, // TERM before KILL, always
		{"the agent leaves", leaving, 26 * sec, true, leaving},
		{"the agent stays", leaving, 27 * sec, true, killed},
		{"killed once", killed, time.Hour, true, killed},
	} {
		if got := s.next(tt.now, tt.since, tt.alone); got != tt.want {
			t.Errorf("%s: phase %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A phase that nothing ends must not set a timer, or the loop would spin.
func TestRest(t *testing.T) {
	t.Parallel()
	s := schedule{siblings: 20 * sec, leave: 27 * sec}
	for p, want := range map[phase]time.Duration{waiting: 15 * sec, leaving: 22 * sec} {
		if rest, bounded := s.rest(p, 5*sec); rest != want || !bounded {
			t.Errorf("phase %d: %s, %v", p, rest, bounded)
		}
	}
	for _, p := range []phase{serving, killed} {
		if _, bounded := s.rest(p, 5*sec); bounded {
			t.Errorf("phase %d is bounded", p)
		}
	}
}
