package relay

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	first  = "10.0.0.1:8502"
	second = "10.0.0.2:8502"
	third  = "10.0.0.3:8502"
)

var errLeader = errors.New("no cluster leader")

// without makes some servers lack a leader.
func without(addresses ...string) func(string) error {
	return func(a string) error {
		if slices.Contains(addresses, a) {
			return errLeader
		}
		return nil
	}
}

// quiet returns an XDS that is not started, and its log.
func quiet(set *servers) (*XDS, *testkit.Log) {
	log := &testkit.Log{}
	return NewXDS(XDSConfig{
		Servers: set, Token: (&tokenFile{secret: "secret"}).read,
		Log: hclog.New(&hclog.LoggerOptions{Output: log}),
	}), log
}

// streamFrom returns a stream that has, or has not, got its first message.
func streamFrom(address string, yes bool) *stream {
	begin := time.Now()
	s := &stream{address: address, token: "secret", answered: make(chan struct{})}
	s.heard = func() time.Time { return begin.Add(time.Since(begin).Truncate(leastPing)) } // by pings
	if yes {
		close(s.answered)
	}
	return s
}

func TestServerWithoutLeaderIsLeftForOneThatHasIt(t *testing.T) {
	t.Parallel()
	hangs := func(a string) error {
		if a != first {
			return nil
		}
		<-time.After(lookLimit)
		return context.DeadlineExceeded
	}
	brief := func() func(string) error { // its second answer names a leader
		asked := 0
		return func(a string) error {
			if a == first {
				asked++
			}
			if asked%2 == 1 && a == first {
				return errLeader
			}
			return nil
		}
	}
	tests := map[string]struct {
		known    []string
		leaders  func(string) error
		answered bool
		leaves   bool
		from, to time.Duration
		warns    int
	}{
		"a leader": {[]string{first, second}, without(), true, false, 0, 0, 0},
		"none, running": {
			[]string{first, second}, without(first), true, true, 8 * time.Second, 14 * time.Second, 0,
		},
		"none, new": {
			[]string{first, second}, without(first), false, true, 3 * time.Second, 3 * time.Second, 0,
		},
		"no answer, new":     {[]string{first, second}, hangs, false, true, 6 * time.Second, 6 * time.Second, 0},
		"no answer, running": {[]string{first, second}, hangs, true, true, 11 * time.Second, 17 * time.Second, 0},
		"one of two others": {
			[]string{first, second, third}, without(first, second), false, true, 3 * time.Second, 3 * time.Second, 0,
		},
		"no server with one":     {[]string{first, second, third}, without(first, second, third), true, false, 0, 0, 1},
		"the only server":        {[]string{first}, without(first), true, false, 0, 0, 1},
		"an election that ended": {[]string{first, second}, brief(), true, false, 0, 0, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newServers(tc.known...)
				set.leaders = tc.leaders
				r, log := quiet(set)
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				defer stop()
				begin := time.Now()
				err := r.leaderless(ctx, streamFrom(first, tc.answered))
				if (err != nil) != tc.leaves {
					t.Errorf("got %v", err)
				}
				took := time.Since(begin)
				if tc.leaves && took < tc.from {
					t.Errorf("left after %s, want %s at least", took, tc.from)
				}
				if tc.leaves && took > tc.to {
					t.Errorf("left after %s, want %s at most", took, tc.to)
				}
				got := strings.Count(log.String(), "[WARN]")
				if got < tc.warns {
					t.Errorf("%d warnings, want %d:\n%s", got, tc.warns, log)
				}
				if tc.warns == 0 && got > 0 {
					t.Errorf("%d warnings, want none:\n%s", got, log)
				}
			})
		})
	}
}

// A server that another one was left for and that has no leader either is tried last.
func TestOthersWithoutLeaderAreTriedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			set := newServers(first, second, third)
			set.leaders = without(first, second)
			r, _ := quiet(set)
			if err := r.leaderless(t.Context(), streamFrom(first, false)); err == nil {
				t.Fatal("stayed")
			}
			set.GRPCFailed(first, errLeader) // as ServeHTTP does
			known, _ := set.GRPCAddresses(t.Context())
			if known[0] == first {
				t.Errorf("order %v", known)
			}
		}
	})
}

func TestOutageOfAllLeadersIsLoggedOnceAndCostsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newServers(first, second, third, "10.0.0.4:8502", "10.0.0.5:8502")
		set.leaders = func(string) error { return errLeader }
		r, log := quiet(set)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		time.AfterFunc(30*time.Minute, func() {
			set.mu.Lock()
			defer set.mu.Unlock()
			set.leaders = nil
		})
		if err := r.leaderless(ctx, streamFrom(first, true)); err != nil {
			t.Error(err)
		}
		if got := strings.Count(log.String(), "[WARN]"); got != 1 {
			t.Errorf("%d warnings, want 1:\n%s", got, log)
		}
		if got := strings.Count(log.String(), "has a leader again"); got != 1 {
			t.Errorf("%d lines about the end, want 1:\n%s", got, log)
		}
		idle := int(30 * time.Minute / leastPing)
		if got := len(set.looks); got > 4*idle*11/10 {
			t.Errorf("%d requests in an hour, half of it without leader; want at most three times %d in that half", got,
				idle)
		}
	})
}

// A look or a ping, whichever comes first, notices a server that is stopped.
func TestServerThatStopsIsLeftWithin12Seconds(t *testing.T) {
	t.Parallel()
	const attempt = 1500 * time.Millisecond // limit of a request while there are other servers
	for _, ping := range []time.Duration{leastPing, mostPing} {
		for stop := time.Second; stop < time.Minute; stop += 250 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				set := newServers(first, second)
				set.leaders = func(a string) error {
					if a == second || time.Since(begin) < stop {
						return nil
					}
					<-time.After(attempt)
					return context.DeadlineExceeded
				}
				r, _ := quiet(set)
				r.connector.pingAfter = ping
				s := streamFrom(first, true)
				s.heard = func() time.Time { return begin.Add(min(time.Since(begin), stop).Truncate(ping)) }
				lost := stop.Truncate(ping) + ping + pingLimit
				ctx, end := context.WithDeadline(t.Context(), begin.Add(lost))
				defer end()
				r.leaderless(ctx, s)
				if took := time.Since(begin) - stop; took > 12*time.Second {
					t.Errorf("pings after %s, stopped at %s: left %s later", ping, stop, took)
				}
			})
		}
	}
}

// Looks at a server are as rare as that allows, and do not stop while the stream is busy.
func TestPeriodOfLooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		busy     bool
		from, to int // in an hour
	}{"silent": {false, 230, 237}, "busy": {true, 180, 189}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set := newServers(first, second)
				r, _ := quiet(set)
				s := streamFrom(first, true)
				if tc.busy {
					s.heard = time.Now
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				r.connector.pingAfter = leastPing
				r.leaderless(ctx, s)
				if got := len(set.looks); got < tc.from || got > tc.to {
					t.Errorf("%d looks in an hour, want %d to %d", got, tc.from, tc.to)
				}
			})
		})
	}
}

// Two servers whose leader comes and goes do not get the stream by turns.
func TestFlappingLeadersMoveTheStreamRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := newServers(first, second)
		on := first
		set.leaders = func(a string) error {
			if a == on {
				return errLeader
			}
			return nil
		}
		r, _ := quiet(set)
		begin, moves := time.Now(), 0
		for time.Since(begin) < 10*time.Minute {
			if err := r.leaderless(t.Context(), streamFrom(on, true)); err != nil {
				moves++
			}
			on = map[string]string{first: second, second: first}[on]
		}
		if most := int(10*time.Minute/leavePause) + 1; moves > most {
			t.Errorf("%d moves in 10 minutes, want at most %d", moves, most)
		}
	})
}

func TestStreamWithoutMessageIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := quiet(newServers(first, second))
		for _, step := range []struct {
			address string
			want    time.Duration
		}{{first, 10 * time.Second}, {second, 10 * time.Second}, {first, time.Minute}} {
			begin := time.Now()
			if err := r.silent(t.Context(), streamFrom(step.address, false)); err == nil {
				t.Error("stayed")
			}
			if took := time.Since(begin); took != step.want {
				t.Errorf("left %s after %s, want %s", step.address, took, step.want)
			}
		}
		if err := r.silent(t.Context(), streamFrom(second, true)); err != nil {
			t.Errorf("left a server that answers: %v", err)
		}
		r.history.serves()
		if got := r.history.limit(first); got != messageLimit {
			t.Errorf("limit %s after a server has served, want %s", got, messageLimit)
		}
	})
}

// Servers that accept connections, as the kernel does for a stopped process, or streams, and
// serve nothing.
func TestServerThatDoesNotServeIsLeft(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	hold := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	headers := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc // nil accepts connections only
		leaders bool             // HTTP works
		most    time.Duration
	}{
		"stopped":      {nil, false, 5 * time.Second},
		"accepts only": {nil, true, 12 * time.Second},
		"no headers":   {hold, true, 12 * time.Second},
		"headers only": {headers, true, 12 * time.Second},
		"cut off":      {hold, false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := testkit.ReservePort(t)
			if tc.handler == nil {
				bad.Listen()
			}
			from := bad.String()
			if tc.handler != nil {
				from = address(startServer(t, tc.handler))
			}
			good := startServer(t, echoing("two"))
			set := newServers(from, address(good))
			if !tc.leaders {
				set.leaders = without(from)
			}
			r := startXDS(t, XDSConfig{Servers: set})
			start := time.Now()
			got := r.open(t, deltaPath).status()
			if got.code != "14" {
				t.Errorf("status %+v, want 14", got)
			}
			if strings.Contains(got.message, "grpc.tls") {
				t.Errorf("%q blames TLS", got.message)
			}
			if took := time.Since(start); took > tc.most {
				t.Errorf("left after %s, want %s at most", took, tc.most)
			}
			r.logged(t, "[WARN]  xDS stream ended: address="+from)
			if got := r.open(t, deltaPath).receive(3); got != "two" {
				t.Errorf("got %q, want the other server", got)
			}
		})
	}
}
