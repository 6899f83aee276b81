package healthsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// port is the service's port, at which a test's application serves or not.
type port struct {
	mu    sync.Mutex
	open  bool
	looks []string
}

func (p *port) set(open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
}

func (p *port) serves(_ context.Context, number int, path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks = append(p.looks, fmt.Sprint(number, path))
	if !p.open {
		return errRefused
	}
	return nil
}

// inStartup runs a test whose container app may serve before ECS has a result.
func inStartup(t *testing.T, how string, test func(*fixture, *port)) {
	t.Helper()
	inBubble(t, []string{"app"}, func(r *fixture) {
		p := &port{}
		r.cfg.HealthSync.Startup = map[string]string{"app": how, "of no check": "tcp"}
		r.serves = p.serves
		r.metadata.set(healthOf(""), nil)
		test(r, p)
	})
}

func TestServingCountsUntilTheFirstResult(t *testing.T) {
	t.Parallel()
	for how, look := range map[string]string{"tcp": "8080", "/health": "8080/health"} {
		inStartup(t, how, func(r *fixture, p *port) {
			r.run()
			r.advance(1900 * time.Millisecond)
			r.wantStatus("app", "critical")
			p.set(true)
			r.advance(200 * time.Millisecond)
			r.wantStatus("app", "passing")
			if d := cmp.Diff(look, p.looks[0]); d != "" {
				t.Error(d)
			}
			p.set(false) // died or hangs before the first result
			r.advance(sec)
			r.wantStatus("app", "critical")
			p.set(true)
			r.advance(sec)
			r.wantStatus("app", "passing")
			for _, step := range []struct{ health, want string }{
				{"UNHEALTHY", "critical"}, {"HEALTHY", "passing"}, {"UNHEALTHY", "critical"},
				{"", "critical"}, // ECS has started the container again
				{"HEALTHY", "passing"}, {"UNKNOWN", "critical"},
			} {
				r.metadata.set(healthOf(step.health), nil)
				r.advance(sec)
				r.wantStatus("app", step.want)
			}
			r.term()
		})
	}
}

func TestServingCountsForRunningContainersOnly(t *testing.T) {
	t.Parallel()
	inStartup(t, "tcp", func(r *fixture, p *port) {
		p.set(true)
		r.metadata.stop("app")
		r.run()
		r.advance(5 * sec)
		r.wantStatus("app", "critical")
		if len(p.looks) > 0 {
			t.Errorf("looked at the port of a stopped container: %v", p.looks)
		}
	})
}

// TestServingContainerIsAskedOnceASecond: without a health check, ECS never has a result.
func TestServingContainerIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	inStartup(t, "tcp", func(r *fixture, p *port) {
		p.set(true)
		r.run()
		r.advance(59750 * time.Millisecond)
		r.wantStatus("app", "passing")
		if reads, looks := r.metadata.reads, len(p.looks); reads != 120 || looks != 60 {
			t.Errorf("%d metadata reads and %d looks at the port in a minute, want 120 and 60", reads, looks)
		}
	})
}

func TestStartupStatusIsNotAnECSStatus(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf(string(listening)), nil)
		r.run()
		r.advance(sec)
		r.wantStatus("app", "critical")
	})
}

// TestStartupIsNeverWronglyPassing runs seeded schedules of an application and of
// ECS: the application listens before it is ready, dies before the first result or
// after it; the metadata and the agent fail in spells. The check may be passing only
// as long after its reason has gone as health-sync needs to see that, and it must
// be passing when health-sync had the time to see the reason.
func TestStartupIsNeverWronglyPassing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inStartup(t, "tcp", func(r *fixture, p *port) {
				s := schedule{fixture: r, port: p, random: rand.New(rand.NewPCG(seed, 3)), start: time.Now()}
				s.play()
			})
		})
	}
}

const (
	// sees is what health-sync needs for a change when nothing fails, seesAfter
	// when something failed before: one read may hang for 3 s.
	sees, seesAfter = 1100 * time.Millisecond, 4200 * time.Millisecond
	// expires is the TTL and the last write's time.
	expires = 35 * time.Second
)

// schedule is one run and what is true in it.
type schedule struct {
	*fixture
	port   *port
	random *rand.Rand
	start  time.Time

	health      string
	listens     bool
	result      bool // ECS has had its first one
	resultAt    time.Time
	stopped     bool
	blind, deaf bool
	// justified is the last time at which the check had a reason to be passing, and
	// because since when it has had one; clear is since when nothing fails.
	justified, because, clear time.Time
}

func (s *schedule) play() {
	s.clear = time.Now()
	s.apply()
	s.run()
	for range 60 {
		s.step()
		s.apply()
		for range 1 + s.random.IntN(30) {
			s.advance(100*time.Millisecond + time.Duration(s.random.IntN(int(100*time.Millisecond))))
			s.observe()
		}
	}
}

// step changes one thing.
func (s *schedule) step() {
	switch n := s.random.IntN(10); {
	case n < 2:
		s.listens = !s.listens
	case n < 4 && (s.result || s.random.IntN(4) == 0):
		if !s.result {
			s.result, s.resultAt = true, time.Now()
		}
		s.health = []string{"HEALTHY", "UNHEALTHY", "HEALTHY", "UNKNOWN"}[s.random.IntN(4)]
	case n == 4 && s.result && s.isClear(seesAfter) && time.Since(s.resultAt) > sees:
		s.health = "" // started again
	case n == 5:
		s.blind = !s.blind
	case n == 6:
		s.deaf = !s.deaf
	case n == 7 && s.random.IntN(10) == 0:
		s.stopped, s.listens = true, false
	}
}

// apply makes the fakes follow.
func (s *schedule) apply() {
	s.port.set(s.listens)
	var err error
	if s.blind {
		err = []error{errors.New("status 500"), errHang}[s.random.IntN(2)]
	}
	s.metadata.set(healthOf(s.health), err)
	if s.stopped {
		s.metadata.stop("app")
	}
	deaf := s.deaf
	s.agent.setAnswer(func(op) error {
		if deaf {
			return errServer
		}
		return nil
	})
	if s.blind || s.deaf {
		s.clear = time.Time{}
	} else if s.clear.IsZero() {
		s.clear = time.Now()
	}
	s.reason()
}

// reason updates since when and until when the check may be passing. Without metadata the
// last status is kept.
func (s *schedule) reason() {
	if s.blind {
		s.justified = time.Now()
	}
	if s.stopped || s.health != "HEALTHY" && (s.result || !s.listens) {
		s.because = time.Time{}
		return
	}
	s.justified = time.Now()
	if s.because.IsZero() {
		s.because = time.Now()
	}
}

func (s *schedule) isClear(d time.Duration) bool {
	return !s.clear.IsZero() && time.Since(s.clear) >= d
}

func (s *schedule) observe() {
	s.reason()
	limit := expires
	if s.isClear(seesAfter) {
		limit = sees
	}
	at := time.Since(s.start)
	switch passing := s.agent.status("app") == "passing"; {
	case passing && (s.justified.IsZero() || time.Since(s.justified) > limit):
		s.t.Fatalf("wrongly passing at %s: listens %v, health %q, first result %v, stopped %v, blind %v, deaf %v",
			at, s.listens, s.health, s.result, s.stopped, s.blind, s.deaf)
	case !passing && s.isClear(seesAfter) && !s.because.IsZero() && time.Since(s.because) > sees:
		s.t.Fatalf("not passing at %s: listens %v, health %q, first result %v", at, s.listens, s.health, s.result)
	}
}
