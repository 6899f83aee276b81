package entrypoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/workload"
)

// fakeChild records what it is sent and when; it ends on demand.
type fakeChild struct {
	start time.Time
	exit  chan int
	sent  []string
	// endsOn ends it, with code 55, when it is sent that.
	endsOn string
}

func newChild(endsOn string) *fakeChild {
	return &fakeChild{start: time.Now(), exit: make(chan int, 1), endsOn: endsOn}
}

func (c *fakeChild) Wait() int                            { return <-c.exit }
func (c *fakeChild) Signal(sig syscall.Signal) error      { return c.take("process " + sig.String()) }
func (c *fakeChild) SignalGroup(sig syscall.Signal) error { return c.take("group " + sig.String()) }
func (c *fakeChild) take(what string) error {
	c.sent = append(c.sent, fmt.Sprintf("%s at %s", what, time.Since(c.start)))
	if what == c.endsOn {
		c.exit <- 55
	}
	return nil
}

func (c *fakeChild) check(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(c.sent, "; "); got != strings.Join(want, "; ") {
		t.Errorf("child was sent %q, want %q", got, want)
	}
}

// fakeMetadata answers by the function and counts.
type fakeMetadata struct {
	reads  atomic.Int64
	answer func(context.Context) (workload.Task, error)
}

func (m *fakeMetadata) Task(ctx context.Context) (workload.Task, error) {
	m.reads.Add(1)
	return m.answer(ctx)
}

// app returns a task with one application in that state.
func app(desired, known string) (workload.Task, error) {
	return workload.Task{
		TaskARN:       "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8",
		DesiredStatus: desired,
		Containers:    []workload.Container{{Name: "app", Type: "NORMAL", DesiredStatus: desired, KnownStatus: known}},
	}, nil
}

// stopsAt returns metadata of an application that is asked to stop at the first time
// and has stopped at the second, counted from now.
func stopsAt(asked, stopped time.Duration) *fakeMetadata {
	start := time.Now()
	return &fakeMetadata{answer: func(context.Context) (workload.Task, error) {
		switch since := time.Since(start); {
		case since < asked:
			return app("RUNNING", "RUNNING")
		case since < stopped:
			return app("STOPPED", "RUNNING")
		default:
			return app("STOPPED", "STOPPED")
		}
	}}
}

// hangs returns metadata whose every read fails after its timeout.
func hangs() *fakeMetadata {
	return &fakeMetadata{answer: func(ctx context.Context) (workload.Task, error) {
		ctx, cancel := context.WithTimeout(ctx, awsutil.MetadataTimeout)
		defer cancel()
		<-ctx.Done()
		return workload.Task{}, ctx.Err()
	}}
}

// send delivers the signals at their times, counted from now.
func send(at map[time.Duration]syscall.Signal) <-chan os.Signal {
	ch := make(chan os.Signal, len(at))
	for after, sig := range at {
		time.AfterFunc(after, func() { ch <- sig })
	}
	return ch
}

func termAt(after time.Duration) <-chan os.Signal {
	return send(map[time.Duration]syscall.Signal{after: syscall.SIGTERM})
}

func envoyOf(child *fakeChild, signals <-chan os.Signal, m Metadata) Envoy {
	return Envoy{Child: child, Signals: signals, Metadata: m, KillGrace: 10 * time.Second, Log: hclog.NewNullLogger()}
}

func TestEnvoyEndsWithin150msOfTheLastApplication(t *testing.T) {
	t.Parallel()
	// Whatever the phase between our reads and the application's end.
	for phase := time.Duration(0); phase < time.Second; phase += 13 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			child := newChild("group terminated")
			m := stopsAt(5*time.Second, 9*time.Second+phase)
			if code := RunEnvoy(t.Context(), envoyOf(child, termAt(5*time.Second), m)); code != 55 {
				t.Errorf("exit code %d, want 55", code)
			}
			if late := time.Since(child.start) - 9*time.Second - phase; late < 0 || late > 150*time.Millisecond {
				t.Errorf("phase %s: TERM came %s after the application's end", phase, late)
			}
			if len(child.sent) != 1 {
				t.Errorf("child was sent %q, want one TERM", child.sent)
			}
		})
	}
}

func TestNoValidAnswerNeverEndsEnvoy(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*fakeMetadata{
		"error": {answer: func(context.Context) (workload.Task, error) { return workload.Task{}, errors.New("500") }},
		"hangs": hangs(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				child := newChild("")
				time.AfterFunc(time.Hour, func() { child.exit <- 0 })
				RunEnvoy(t.Context(), envoyOf(child, termAt(time.Second), m))
				child.check(t)
				if got := time.Since(child.start); got != time.Hour {
					t.Errorf("ended after %s, want 1h", got)
				}
				// Not more than one each waitPause: no busy loop either.
				if n := m.reads.Load(); n < 1000 || n > int64(time.Hour/waitPause) {
					t.Errorf("%d reads in an hour, want 1000 to %d", n, time.Hour/waitPause)
				}
			})
		})
	}
}

// After Envoy got its TERM there is nothing to do but to wait: a loop that
// turns meanwhile would never let the bubble's time pass.
func TestNoBusyLoopWhileEnvoyDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("")
		m := stopsAt(0, 0)
		e := envoyOf(child, termAt(time.Second), m)
		e.KillGrace = 0
		time.AfterFunc(24*time.Hour, func() { child.exit <- 0 })
		RunEnvoy(t.Context(), e)
		child.check(t, "group terminated at 1s")
		if got := m.reads.Load(); got != 1 {
			t.Errorf("%d metadata reads, want 1", got)
		}
	})
}

func TestTermBeforeTheStartIsHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("group terminated")
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		RunEnvoy(t.Context(), envoyOf(child, signals, stopsAt(0, 0)))
		child.check(t, "group terminated at 0s")
	})
}

func TestHangingMetadataDelaysNoExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("process interrupt")
		signals := send(map[time.Duration]syscall.Signal{
			time.Second:             syscall.SIGTERM,
			1500 * time.Millisecond: syscall.SIGINT, // in the middle of a read
		})
		e := envoyOf(child, signals, hangs())
		e.Drain = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		RunEnvoy(t.Context(), e)
		if got := time.Since(child.start); got != 1500*time.Millisecond {
			t.Errorf("ended after %s, want 1.5s", got)
		}
	})
}

func TestEnvoyDeafToTermIsKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("group killed")
		RunEnvoy(t.Context(), envoyOf(child, termAt(time.Second), stopsAt(0, 0)))
		child.check(t, "group terminated at 1s", "group killed at 11s")
	})
}

// drainable returns an Envoy whose drain requests are recorded; answer decides about
// the n-th, counted from 1.
func drainable(
	child *fakeChild, signals <-chan os.Signal, m Metadata, answer func(ctx context.Context, n int) error,
) (Envoy, *[]time.Duration) {
	e := envoyOf(child, signals, m)
	asked := &[]time.Duration{}
	e.Drain = func(ctx context.Context) error {
		*asked = append(*asked, time.Since(child.start))
		return answer(ctx, len(*asked))
	}
	return e, asked
}

func TestRefusedEnvoyEndsWithTheCodeOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child, refusals := newChild("group terminated"), make(chan struct{}, 1)
		e := envoyOf(child, nil, stopsAt(time.Hour, time.Hour))
		e.Refused = refusals
		time.AfterFunc(time.Second, func() { refusals <- struct{}{} })
		if code := RunEnvoy(t.Context(), e); code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		child.check(t, "group terminated at 1s")
	})
}

// TestDrainStartsWithTheTaskStopping: ECS stops the application first, and TERM
// arrives here after that.
func TestDrainStartsWithTheTaskStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("group terminated")
		e, asked := drainable(child, termAt(70*time.Second), stopsAt(60*time.Second, 70*time.Second),
			func(context.Context, int) error { return nil })
		RunEnvoy(t.Context(), e)
		if len(*asked) != 1 || (*asked)[0] != 60*time.Second {
			t.Errorf("drained at %v, want once, at 1m0s", *asked)
		}
	})
}

func TestDrainIsRetriedUntilItWorks(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("refused") },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				child := newChild("group terminated")
				e, asked := drainable(child, termAt(70*time.Second), stopsAt(60*time.Second, 70*time.Second),
					func(ctx context.Context, n int) error {
						if n < 3 {
							return failure(ctx)
						}
						return nil
					})
				RunEnvoy(t.Context(), e)
				if len(*asked) != 3 {
					t.Fatalf("drained at %v, want three times", *asked)
				}
				if first, last := (*asked)[0], (*asked)[2]; first != 60*time.Second || last > 67*time.Second {
					t.Errorf("drained from %s to %s, want from 1m0s to at most 1m7s", first, last)
				}
			})
		})
	}
}

func TestDrainThatNeverWorksDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("group terminated")
		e, _ := drainable(child, termAt(70*time.Second), stopsAt(60*time.Second, 75*time.Second),
			func(context.Context, int) error { return errors.New("refused") })
		RunEnvoy(t.Context(), e)
		if ended := time.Since(child.start); ended < 75*time.Second || ended > 75150*time.Millisecond {
			t.Errorf("ended after %s, want 1m15s", ended)
		}
	})
}

func TestIdleReadsOncePerSecondAndOnlyForTheDrain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		drain func(context.Context) error
		want  int64
	}{
		{func(context.Context) error { return nil }, 3601},
		{nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			child := newChild("")
			m := stopsAt(2*time.Hour, 2*time.Hour)
			e := envoyOf(child, nil, m)
			e.Drain = c.drain
			time.AfterFunc(time.Hour+time.Millisecond, func() { child.exit <- 0 })
			RunEnvoy(t.Context(), e)
			if got := m.reads.Load(); got != c.want {
				t.Errorf("%d reads in an hour, want %d", got, c.want)
			}
		})
	}
}

func TestRunApp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		delay   time.Duration
		signals map[time.Duration]syscall.Signal
		endsOn  string
		exitAt  time.Duration // by itself, with code 0
		code    int
		want    []string
	}{
		{name: "exit before TERM", delay: time.Minute, exitAt: time.Second},
		{
			name: "exit during the delay", delay: time.Minute, exitAt: 2 * time.Second,
			signals: map[time.Duration]syscall.Signal{time.Second: syscall.SIGTERM},
		},
		{
			name: "TERM after the delay", delay: time.Minute, endsOn: "group terminated", code: 55,
			signals: map[time.Duration]syscall.Signal{time.Second: syscall.SIGTERM},
			want:    []string{"group terminated at 1m1s"},
		},
		{
			name: "second TERM at once", delay: time.Minute, endsOn: "process terminated", code: 55,
			signals: map[time.Duration]syscall.Signal{time.Second: syscall.SIGTERM, 2 * time.Second: syscall.SIGTERM},
			want:    []string{"process terminated at 2s"},
		},
		{
			name: "an application that ignores TERM is waited for", delay: time.Minute, exitAt: time.Hour,
			signals: map[time.Duration]syscall.Signal{time.Second: syscall.SIGTERM},
			want:    []string{"group terminated at 1m1s"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				child := newChild(c.endsOn)
				if c.exitAt > 0 {
					time.AfterFunc(c.exitAt, func() { child.exit <- 0 })
				}
				code := RunApp(t.Context(),
					App{Child: child, Signals: send(c.signals), Delay: c.delay, Log: hclog.NewNullLogger()})
				if code != c.code {
					t.Errorf("exit code %d, want %d", code, c.code)
				}
				child.check(t, c.want...)
			})
		})
	}
}
