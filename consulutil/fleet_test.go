package consulutil

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// logins is an outage in which tasks wait to log in.
type logins struct {
	tasks  int
	rate   float64 // logins a second of the servers
	phases []testkit.Phase
	// from and to are when tasks start, since the beginning of the outage.
	from, to time.Duration
}

// outcome is how the tasks of an outage got on after it.
type outcome struct {
	done     []time.Duration // since the servers serve, sorted
	gaveUp   int
	login    testkit.Count
	busiest  int
	orphaned int // tokens
}

// run logs the tasks in, by real sessions in virtual time.
func (l logins) run(t *testing.T) outcome {
	t.Helper()
	var o outcome
	synctest.Test(t, func(t *testing.T) {
		f := testkit.NewFleet(l.phases...)
		f.Cost["acl/login"] = time.Duration(float64(time.Second) / l.rate)
		client := newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap})
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range l.tasks {
			wg.Go(func() {
				_ = retry.Sleep(t.Context(), l.from+rand.N(max(l.to-l.from, 1)))
				_, err := fleetSession(client).Login(t.Context(), LoginParams{Method: "iam"})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					o.gaveUp++
					return
				}
				o.done = append(o.done, time.Since(f.Served()))
			})
		}
		wg.Wait()
		slices.Sort(o.done)
		o.login, o.busiest = f.Count("acl/login"), f.Busiest()
		o.orphaned = o.login.Done - len(o.done)
	})
	if l.tasks > 1 {
		t.Logf("%d tasks, %.1f logins a second: last after %s, %.2f of the ideal %s; "+
			"%d gave up, %d logins, %d tokens without an owner, %d requests in the busiest second",
			l.tasks, l.rate, o.last().Round(100*time.Millisecond), o.slow(l), l.ideal().Round(time.Second),
			o.gaveUp, o.login.Received, o.orphaned, o.busiest)
	}
	return o
}

func fleetSession(c *api.Client) *Session {
	return &Session{
		Servers: func() (*api.Client, error) { return c, nil },
		Bearer:  func(context.Context) (string, error) { return "bearer", nil },
		Limit:   retry.StartLimit,
		Log:     hclog.NewNullLogger(),
	}
}

// writerFunc is a function as a writer.
type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// ideal returns how long servers without a pause work for all tasks.
func (l logins) ideal() time.Duration {
	return time.Duration(float64(l.tasks) / l.rate * float64(time.Second))
}

// slow returns the time until the last login, relative to the ideal.
func (o outcome) slow(l logins) float64 { return o.last().Seconds() / l.ideal().Seconds() }

func (o outcome) last() time.Duration {
	if len(o.done) == 0 {
		return 0
	}
	return o.done[len(o.done)-1]
}

func refusedFor(d time.Duration) testkit.Phase { return testkit.Phase{For: d, Do: testkit.Refuse} }

// TestFleetLogsInAfterAnOutage takes the figures of docs/SCALE.md. The short lane has a
// smaller fleet, at servers that are a little faster in proportion: chance has more room.
func TestFleetLogsInAfterAnOutage(t *testing.T) {
	busy := testkit.Refused(http.StatusTooManyRequests, "rate limit")
	logins429 := testkit.Refused(http.StatusTooManyRequests, "rate limit", "acl/login")
	for _, tt := range []struct {
		name string
		logins
		// slowest is the time until the last login, relative to the ideal; lost the tokens
		// without an owner, relative to the tasks.
		slowest, lost float64
	}{
		{"300 a second", logins{10_000, 300, []testkit.Phase{refusedFor(time.Minute)}, 0, time.Minute}, 1.3, 0},
		{"100 a second", logins{10_000, 100, []testkit.Phase{refusedFor(time.Minute)}, 0, time.Minute}, 1.3, 0.001},
		{
			"started together, 300 a second",
			logins{3_000, 90, []testkit.Phase{refusedFor(time.Minute)}, 0, time.Second}, 1.3, 0,
		},
		{
			"started together, 100 a second",
			logins{3_000, 30, []testkit.Phase{refusedFor(time.Minute)}, 0, time.Second}, 1.5, 0.02,
		},
		// A login of its end that is not answered cannot be repeated within three minutes.
		{"two minutes", logins{3_000, 32, []testkit.Phase{refusedFor(2 * time.Minute)}, 0, 10 * time.Second}, 1.5,
			0.02},
		{"20 s", logins{3_000, 50, []testkit.Phase{refusedFor(20 * time.Second)}, 0, 20 * time.Second}, 1.3, 0},
		{"3,000 tasks, 50 a second", logins{3_000, 50, []testkit.Phase{refusedFor(time.Minute)}, 0, time.Minute}, 1.3,
			0},
		{
			"dropped packets",
			logins{3_000, 30, []testkit.Phase{{For: time.Minute, Do: testkit.Drop}}, 0, time.Minute}, 1.5, 0.02,
		},
		{"no answers", logins{3_000, 30, []testkit.Phase{{For: time.Minute, Do: testkit.Hang}}, 0, time.Minute}, 1.5,
			0.02},
		{"stopped servers", logins{3_000, 30, []testkit.Phase{{For: time.Minute, Frozen: true}}, 0, time.Minute}, 1.5,
			0.02},
		{"then no leader", logins{3_000, 30, []testkit.Phase{
			refusedFor(time.Minute), {For: 15 * time.Second, Do: testkit.NoLeader},
		}, 0, time.Minute}, 1.5, 0.02},
		{"then 429", logins{3_000, 30, []testkit.Phase{
			refusedFor(time.Minute), {For: 15 * time.Second, Do: busy},
		}, 0, time.Minute}, 1.5, 0.02},
		// The answers to logins are seen one by one, so that they cannot be spread evenly.
		{
			"429 to logins only",
			logins{3_000, 30, []testkit.Phase{{For: time.Minute, Do: logins429}}, 0, time.Minute}, 1.8, 0.1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			chance := 0.0
			if testing.Short() {
				tt.rate *= 1.2 * 300 / float64(tt.tasks)
				tt.tasks, chance = 300, 0.02
			}
			o := tt.run(t)
			if limit := tt.slowest + 15*chance; o.slow(tt.logins) > limit {
				t.Errorf("the last login after %.2f of the ideal, want at most %.2f", o.slow(tt.logins), limit)
			}
			if limit := (tt.lost + chance) * float64(tt.tasks); float64(o.orphaned) > limit {
				t.Errorf("%d tokens without an owner, want at most %.0f", o.orphaned, limit)
			}
			if o.gaveUp > 0 {
				t.Errorf("%d tasks gave up", o.gaveUp)
			}
		})
	}
}

// A single task is not held up for a fleet after a short outage.
func TestLoginAfterAShortOutage(t *testing.T) {
	t.Parallel()
	var late []time.Duration
	for range 200 {
		late = append(late,
			logins{tasks: 1, rate: 1000, phases: []testkit.Phase{refusedFor(6 * time.Second)}}.run(t).done...)
	}
	slices.Sort(late)
	if median := late[len(late)/2]; median > 500*time.Millisecond {
		t.Errorf("half of the logins later than %s after the servers are back, want 0.5 s", median)
	}
	if last := late[len(late)-1]; last > time.Second {
		t.Errorf("a login %s after the servers are back, want at most 1 s", last)
	}
}

// TERM ends a login that lets others go first.
func TestLoginEndsWhileItLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := testkit.NewFleet(refusedFor(time.Minute))
		s := fleetSession(newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap}))
		ctx, cancel := context.WithCancelCause(t.Context())
		errTerm := errors.New("TERM")
		var ended time.Time
		s.Log = hclog.New(&hclog.LoggerOptions{Output: writerFunc(func(line string) {
			if strings.Contains(line, "logging in after a pause") {
				ended = time.Now()
				cancel(errTerm)
			}
		})})
		if _, err := s.Login(ctx, LoginParams{Method: "iam"}); !errors.Is(err, errTerm) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(ended); took > 0 {
			t.Errorf("ended %s after TERM", took)
		}
		if n := f.Count("acl/login").Received; n > 0 {
			t.Errorf("%d logins after TERM", n)
		}
	})
}

// A login without an answer may have made a token: it is awaited for a minute, and repeated
// after half a minute at least.
func TestLostLoginIsRepeatedLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		f := testkit.NewFleet(testkit.Phase{For: 80 * time.Second, Do: func(r *http.Request) (*http.Response, error) {
			if testkit.Kind(r) == "status/leader" {
				return nil, nil
			}
			at = append(at, time.Since(start))
			return testkit.Hang(r)
		}})
		s := fleetSession(newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap}))
		if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(at, []time.Duration{0}) {
			t.Errorf("logins after %v, want one at once and the next when the servers are back", at)
		}
		if took := time.Since(start); took < loginLimit+lostPause || took > loginLimit+2*lostPause {
			t.Errorf("logged in after %s, want 90 s to 2 min", took)
		}
	})
}

// A task whose login was sent does not leave its token to the controller at TERM, if the
// servers answer soon, and does not wait for ever.
func TestSentLoginIsAwaitedForAMomentAfterTERM(t *testing.T) {
	t.Parallel()
	for latency, want := range map[time.Duration]time.Duration{
		5 * time.Second:  5 * time.Second,
		30 * time.Second: time.Second + RequestTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := testkit.NewFleet()
			f.Cost["acl/login"] = latency
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			c := newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap})
			token, err := Login(WithLimit(ctx, loginLimit), c, LoginParams{Method: "iam"})
			if took := time.Since(start); took != want {
				t.Errorf("answered after %s: ended after %s, want %s", latency, took, want)
			}
			if got := token.Secret != ""; got != (latency < RequestTimeout) {
				t.Errorf("answered after %s: token %v, %v", latency, token, err)
			}
		})
	}
}
