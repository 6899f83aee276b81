package receiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// bubble runs a test in a synctest bubble with a fixture.
func bubble(t *testing.T, test func(t *testing.T, w *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		defer w.close()
		test(t, w)
		w.wantNoSecrets()
	})
}

func TestOneShotWritesTheTokenAndClosesThePort(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.read(); got != "secret-1-of-the-task" {
			t.Errorf("token file has %q", got)
		}
		for _, path := range []string{w.file, w.file + ".json"} {
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		synctest.Wait()
		if w.open() {
			t.Error("the callback port is open")
		}
		if !slices.Equal(w.answered(), []int{200}) {
			t.Errorf("pushes were answered %v", w.answered())
		}
	})
}

func TestRestartTakesOverAValidToken(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(w.ttl - time.Second)
		if err := w.run(t.Context()); err != nil || w.called("POST /v1/token") != 1 {
			t.Errorf("%v, %d requests", err, w.called("POST /v1/token"))
		}
		<-time.After(time.Second)
		if err := w.run(t.Context()); err != nil || w.called("POST /v1/token") != 2 {
			t.Errorf("after the token expired: %v, %d requests", err, w.called("POST /v1/token"))
		}
		if got := w.read(); got != "secret-2-of-the-task" {
			t.Errorf("token file has %q", got)
		}
	})
}

func TestFilesOfOthersAreNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *fixture) error{
		"no record":    func(w *fixture) error { return os.Remove(w.file + ".json") },
		"broken":       func(w *fixture) error { return os.WriteFile(w.file+".json", []byte("{"), 0o600) },
		"other secret": func(w *fixture) error { return os.WriteFile(w.file, []byte("x"), 0o644) },
		"other task": func(w *fixture) error {
			data, err := os.ReadFile(w.file + ".json")
			return errors.Join(err, os.WriteFile(w.file+".json",
				[]byte(strings.ReplaceAll(string(data), "2f1e", "77ab")), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				if err := w.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := change(w); err != nil {
					t.Fatal(err)
				}
				if err := w.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := w.read(); got != "secret-2-of-the-task" {
					t.Errorf("the token file has %q, want the second token", got)
				}
				if info, err := os.Stat(w.file); err != nil || info.Mode() != 0o600 {
					t.Errorf("the token file has %v, %v, want mode 0600", info, err)
				}
			})
		})
	}
}

// first answers the first requests of an operation, and passes the others.
func first(op string, answers ...func() (*http.Response, bool, error)) func(string) (*http.Response, bool, error) {
	n := 0
	return func(got string) (*http.Response, bool, error) {
		if got != op || n >= len(answers) {
			return nil, false, nil
		}
		n++
		return answers[n-1]()
	}
}

func status(code int, retryAfter string) func() (*http.Response, bool, error) {
	return func() (*http.Response, bool, error) { return refusal(code, retryAfter), false, nil }
}

func lost() (*http.Response, bool, error) { return nil, true, nil }

func unreachable() (*http.Response, bool, error) {
	return nil, false, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

func TestRequestIsRepeatedWhileItCanSucceed(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		start := time.Now()
		w.fault = first("POST /v1/token", status(404, ""), unreachable, status(425, "20"), status(429, "40"),
			status(502, ""), status(503, ""))
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if elapsed := time.Since(start); elapsed < time.Minute || elapsed > 5*time.Minute {
			t.Errorf("took %s: want the minute of Retry-After, and less than -timeout", elapsed)
		}
		if w.called("POST /v1/token") != 7 {
			t.Errorf("%d requests", w.called("POST /v1/token"))
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0,
		"99999999999": 5 * time.Minute, "3600": 5 * time.Minute, "x": 0} {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got, want)
		}
	}
	date := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	if got := retryAfter(http.Header{"Retry-After": {date}}); got < 50*time.Second || got > time.Minute {
		t.Errorf("Retry-After %s: %s", date, got)
	}
}

func TestRefusalsEndTheCommandWithOneMessage(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 401, 403, 409, 410, 422} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				w.fault = first("POST /v1/token", status(code, ""))
				err := w.run(t.Context())
				want := fmt.Sprintf("obtain a token for task %s: request a token: the broker answered %d (fault): not "+
					"now, request r0", taskARN, code)
				if _, ok := errors.AsType[*retry.PermanentError](err); !ok || err.Error() != want {
					t.Errorf("error %v, want permanent: %s", err, want)
				}
				if w.called("POST /v1/token") != 1 {
					t.Errorf("%d requests", w.called("POST /v1/token"))
				}
			})
		})
	}
}

func TestTaskThatStaysUnknownIsRefusedAfterAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		start := time.Now()
		w.fault = func(string) (*http.Response, bool, error) { return refusal(404, ""), false, nil }
		err := w.run(t.Context())
		if _, ok := errors.AsType[*retry.PermanentError](err); !ok {
			t.Errorf("error %v, want a permanent one", err)
		}
		if elapsed := time.Since(start); elapsed < time.Minute || elapsed > 80*time.Second {
			t.Errorf("took %s, want 60 s and one pause", elapsed)
		}
	})
}

func TestTimeoutEndsTheCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"broker unreachable": {func(w *fixture) {
			w.fault = func(string) (*http.Response, bool, error) { return unreachable() }
		}, "connection refused"},
		"no push": {func(w *fixture) { w.noPush = true }, "no push arrived for request r"},
		"late metadata": {func(w *fixture) { w.noPush, w.silent = true, time.Now().Add(3*time.Minute) },
			"no push arrived for request r"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				c.change(w)
				start := time.Now()
				err := w.run(t.Context())
				if _, ok := errors.AsType[*retry.GaveUpError](err); !ok || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want that of giving up with %q", err, c.want)
				}
				if elapsed := time.Since(start); elapsed != 5*time.Minute {
					t.Errorf("took %s, want 5m", elapsed)
				}
			})
		})
	}
}

func TestTermWhileRequestingEndsTheCommand(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.noPush = true
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(&exit.SignalError{Signal: syscall.SIGTERM}) })
		err := w.run(ctx)
		if _, ok := errors.AsType[*exit.SignalError](err); !ok {
			t.Errorf("error %v, want the signal", err)
		}
	})
}

// A request whose answer is lost may have been accepted: its push is taken, also when the
// broker refuses another request meanwhile.
func TestPushForARequestWithoutAnAnswerIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.fault = first("POST /v1/token", lost, status(409, ""))
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.read(); got != "secret-1-of-the-task" {
			t.Errorf("token file has %q", got)
		}
	})
}

func TestRequestThatEndsAtTheBrokerIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"gone", "failed", "expired"} {
		t.Run(state, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				w.noPush = true
				start := time.Now()
				time.AfterFunc(3*time.Second, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.noPush = false
					if w.grants["r1"].state = state; state == "gone" { // the broker was restarted
						w.grants["r1"], w.grants["r2"] = nil, nil
					}
				})
				if err := w.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if elapsed := time.Since(start); elapsed > 10*time.Second {
					t.Errorf("took %s, want less than two looks at the state", elapsed)
				}
			})
		})
	}
}

func TestRejectedRequestEndsTheCommand(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.noPush = true
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.grants["r1"].state = "rejected"
		})
		err := w.run(t.Context())
		if _, ok := errors.AsType[*retry.PermanentError](err); !ok ||
			!strings.Contains(err.Error(), "request r1 is rejected") {
			t.Errorf("error %v, want that the request was rejected", err)
		}
	})
}

func TestTokenWithoutExpiryStaysUntilTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.endless = backend.ConsulACL, true
		stop := w.start()
		<-time.After(500 * time.Hour)
		if w.made() != 1 || !w.alive(w.read()) {
			t.Errorf("%d tokens were made, want 1 that lives", w.made())
		}
		w.stop()
		if err := stop(); err != nil || w.liveTokens() != 0 {
			t.Errorf("%v, %d live tokens", err, w.liveTokens())
		}
		if log := w.log.String(); !strings.Contains(log, "expires_at=never") {
			t.Error(log)
		}
	})
}
