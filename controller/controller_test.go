package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

var (
	errFault   = errors.New("fault")
	errRefused = &retry.PermanentError{Err: errors.New("refused")}
)

// deleted returns n items that were deleted.
func deleted(kind string, reason Reason, n int) (items []Item) {
	for range n {
		items = append(items, Item{Kind: kind, Reason: reason})
	}
	return items
}

// scripted is a scripted Consul and ECS. Its functions may be replaced by a test.
type scripted struct {
	*Controller
	t     *testing.T
	start time.Time
	mu    sync.Mutex
	log   strings.Builder
	// passes and setups are the start of each.
	passes, setups []time.Duration
	forgotten      int
	lead           func(ctx context.Context, standby func(string) error, lead func(context.Context) error) error
	setup          func(n int) error
	pass           func(ctx context.Context, n int) (Report, error)
}

// newScripted leads at once, finds nothing to do, and never fails.
func newScripted(t *testing.T) *scripted {
	w := &scripted{t: t, start: time.Now()}
	w.lead = func(ctx context.Context, _ func(string) error, lead func(context.Context) error) error {
		return lead(ctx)
	}
	w.setup = func(int) error { return nil }
	w.pass = func(context.Context, int) (Report, error) { return Report{Running: 3}, nil }
	w.Controller = New(Options{
		Interval: 10 * time.Second, Rate: 5,
		Lock: w, Setup: w, Cleaner: w,
		Metrics: NewMetrics("v1"),
		Log:     hclog.New(&hclog.LoggerOptions{Output: w, Level: hclog.Debug, DisableTime: true}),
	})
	return w
}

// Ensure implements Setup.
func (w *scripted) Ensure(context.Context) ([]setup.Write, error) {
	w.setups = append(w.setups, time.Since(w.start))
	return make([]setup.Write, 1), w.setup(len(w.setups))
}

// Forget implements Cleaner.
func (w *scripted) Forget() { w.forgotten++ }

// Pass implements Cleaner.
func (w *scripted) Pass(ctx context.Context) (Report, error) {
	w.passes = append(w.passes, time.Since(w.start))
	return w.pass(ctx, len(w.passes))
}

// Write gathers the log.
func (w *scripted) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// logged counts lines with a text.
func (w *scripted) logged(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), text)
}

// Lead implements Leader.
func (w *scripted) Lead(ctx context.Context, standby func(string) error, lead func(context.Context) error) error {
	return w.lead(ctx, standby, lead)
}

// runFor runs the controller until a time has passed; it ends at once then.
func (w *scripted) runFor(d time.Duration) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	start := time.Now()
	err := w.Run(ctx)
	if took := time.Since(start); took > d {
		w.t.Errorf("ended %s after its context", took-d)
	}
	return err
}

// TestRunKeepsPassing: setup first, passes at a slowing pace, setup again now
// and then, and the end of the context is an orderly one.
func TestRunKeepsPassing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		if err := w.runFor(time.Hour); err != nil {
			t.Errorf("got %v", err)
		}
		if n := len(w.setups); n < 6 || n > 7 {
			t.Fatalf("%d setups, want 6 or 7", n)
		}
		testkit.Equal(t, "times of the first setups", w.setups[:2], []time.Duration{0, setupAgain})
		// An hour in steps of 24 to 36 s.
		if n := len(w.passes); n < 100 || n > 150 {
			t.Errorf("%d passes", n)
		}
		for i, at := range w.passes[1:] {
			if step := at - w.passes[i]; step < 8*time.Second || step > 36*time.Second {
				t.Errorf("pass %d came after %s", i+1, step)
			}
		}
	})
}

// TestMissingNodeIsMadeByTheNextPass: setup does not wait for its ten minutes, and is due
// once for each pass that misses the node.
func TestMissingNodeIsMadeByTheNextPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.pass = func(_ context.Context, n int) (Report, error) {
			return Report{NodeMissing: n == 3 || n == 4}, nil
		}
		if err := w.runFor(5 * time.Minute); err != nil {
			t.Errorf("got %v", err)
		}
		if want := []time.Duration{0, w.passes[2], w.passes[3]}; !slices.Equal(w.setups, want) {
			t.Errorf("setups at %v, want %v", w.setups, want)
		}
	})
}

// TestRunJitters: two controllers that begin together do not stay together.
func TestRunJitters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newScripted(t), newScripted(t)
		var wg sync.WaitGroup
		wg.Go(func() { a.runFor(time.Hour) })
		wg.Go(func() { b.runFor(time.Hour) })
		wg.Wait()
		same := 0
		for i := range min(len(a.passes), len(b.passes)) {
			if a.passes[i] == b.passes[i] {
				same++
			}
		}
		if same > 2 {
			t.Errorf("%d passes at the same moment", same)
		}
	})
}

// TestRunSurvivesFailedPasses: no error of a pass ends the controller, which keeps
// trying every 15 s.
func TestRunSurvivesFailedPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.pass = func(_ context.Context, n int) (Report, error) {
			if n <= 20 {
				return Report{}, errRefused
			}
			return Report{}, nil
		}
		if err := w.runFor(time.Hour); err != nil {
			t.Errorf("got %v", err)
		}
		if n := w.logged("[ERROR] pass failed"); n != 20 {
			t.Errorf("%d lines about 20 failures", n)
		}
		if step := w.passes[15] - w.passes[14]; step < 12*time.Second || step > 18*time.Second {
			t.Errorf("%s between failures", step)
		}
		if step := w.passes[40] - w.passes[39]; step > 36*time.Second {
			t.Errorf("%s long after them", step)
		}
	})
}

// With a line now and then while the cause stays, and longer pauses.
func TestSetupIsRetriedWhileConsulIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		const away = 400
		w.setup = func(n int) error {
			if n <= away {
				return errFault
			}
			return nil
		}
		if err := w.runFor(4 * time.Hour); err != nil {
			t.Errorf("got %v", err)
		}
		if n := w.logged("[ERROR] setup failed, trying again: attempt="); n < 2 || n > away/10 {
			t.Errorf("%d lines about %d failures of one cause", n, away)
		}
		if pause := w.setups[away] - w.setups[away-1]; pause > 15*time.Second || w.setups[away] < time.Hour/4 {
			t.Errorf("attempt %d at %s, %s after the one before", away, w.setups[away], pause)
		}
		if again := w.setups[away+1] - w.setups[away]; again < setupAgain {
			t.Errorf("again %s after it succeeded", again)
		}
		if n := w.logged("[INFO]  setup complete"); n != 1 {
			t.Errorf("%d lines about its success", n)
		}
	})
}

// TestCleanUpDoesNotWaitForSetup: an object that Consul refuses keeps tasks from
// logging in, and is reported; what dead tasks left is removed all the same.
func TestCleanUpDoesNotWaitForSetup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		var healthBefore, healthAfter string
		w.setup = func(int) error { return errors.New("auth method x has type jwt") }
		w.pass = func(_ context.Context, n int) (Report, error) {
			switch now := time.Since(w.start); {
			case now < setupLimit:
				_, healthBefore = get(w.Controller, "/healthz")
			default:
				_, healthAfter = get(w.Controller, "/healthz")
			}
			if n > 1 {
				compare(t, w.Controller, []metric{{"setup_failing", 1, nil}})
			}
			return Report{Deleted: deleted("token", "stopped", 1)}, nil
		}
		if err := w.runFor(time.Hour); err != nil {
			t.Errorf("got %v", err)
		}
		if n := len(w.passes); n < 290 || w.passes[0] != 0 { // each 8 to 12 s
			t.Errorf("%d passes, the first at %s", n, w.passes[0])
		}
		if healthBefore != "ok\n" {
			t.Errorf("health in the first five minutes: %q", healthBefore)
		}
		if !strings.HasPrefix(healthAfter, "setup has failed for ") || strings.Contains(healthAfter, "auth method x") {
			t.Errorf("health later: %q", healthAfter)
		}
		compare(t, w.Controller, []metric{{"setup_failing", 0, nil}}) // another leads
		if code, text := get(w.Controller, "/healthz"); code != 200 {
			t.Errorf("health when not leading: %d %q", code, text)
		}
	})
}

// TestCleanUpDoesNotWaitForTheSetupLock: which another controller may hold for a minute.
func TestCleanUpDoesNotWaitForTheSetupLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.setup = func(int) error {
			<-time.After(min(time.Minute, time.Hour-time.Since(w.start))) // until the context ends
			return errFault
		}
		w.pass = func(context.Context, int) (Report, error) {
			return Report{Deleted: deleted("token", "stopped", 1)}, nil
		}
		if err := w.runFor(time.Hour); err != nil {
			t.Errorf("got %v", err)
		}
		for i, at := range w.passes[1:] {
			if step := at - w.passes[i]; step > 12*time.Second {
				t.Errorf("pass %d came after %s", i+1, step)
			}
		}
	})
}

// TestRefusalEndsRun: a refusal of setup or of the lock, at once.
func TestRefusalEndsRun(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(*scripted){
		"setup": func(w *scripted) { w.setup = func(int) error { return errRefused } },
		"lock": func(w *scripted) {
			w.lead = func(context.Context, func(string) error, func(context.Context) error) error { return errRefused }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newScripted(t)
				refuse(w)
				err := w.Run(t.Context())
				if _, ok := errors.AsType[*retry.PermanentError](err); !ok || !errors.Is(err, errRefused) {
					t.Errorf("got %v, want a permanent %v", err, errRefused)
				}
				testkit.Equal(t, "time until the end", time.Since(w.start), 0)
			})
		})
	}
}

// TestLaterSetupFailureDoesNotEndRun: a leader whose setup has succeeded once
// continues clean-up.
func TestLaterSetupFailureDoesNotEndRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.setup = func(n int) error {
			if n > 1 {
				return errRefused
			}
			return nil
		}
		testkit.ErrorContains(t, w.runFor(time.Hour), "")
		if s, p := len(w.setups), len(w.passes); s < 5 || p < 100 {
			t.Errorf("%d setups and %d passes, want 5 and 100", s, p)
		}
	})
}

// TestLostLeadership: the controller competes again without a pause, and runs setup
// again.
func TestLostLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		terms := 0
		w.lead = func(ctx context.Context, _ func(string) error, lead func(context.Context) error) error {
			if terms++; terms > 1 {
				return lead(ctx)
			}
			term, end := context.WithTimeout(ctx, time.Minute)
			defer end()
			lead(term)
			return &consulutil.LeadershipLostError{Err: errFault}
		}
		if err := w.runFor(10 * time.Minute); err != nil {
			t.Errorf("got %v", err)
		}
		testkit.Equal(t, "leaderships, sessions forgotten, warnings",
			[]int{terms, w.forgotten, w.logged("[WARN]  leadership lost")}, []int{2, 2, 1})
		testkit.Equal(t, "times of setups", w.setups[1:], []time.Duration{time.Minute})
	})
}

// TestConsulAwayForTheLock: retried as setup is.
func TestConsulAwayForTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		attempts := 0
		w.lead = func(ctx context.Context, _ func(string) error, lead func(context.Context) error) error {
			if attempts++; attempts <= 50 {
				return errFault
			}
			return lead(ctx)
		}
		testkit.ErrorContains(t, w.runFor(time.Hour), "")
		if p, l := len(w.passes), w.logged("leadership failed, retrying"); p == 0 || l == 0 {
			t.Errorf("%d passes and %d lines about failures after %d attempts, want some", p, l, attempts)
		}
	})
}

// TestStopDuringAPass: the context ends the pass, whose error is not logged then.
func TestStopDuringAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.pass = func(ctx context.Context, _ int) (Report, error) {
			<-ctx.Done()
			return Report{}, ctx.Err()
		}
		if err := w.runFor(time.Minute); err != nil || w.logged("[ERROR]") != 0 {
			t.Errorf("got %v and %s", err, w.log.String())
		}
	})
}
