package receiver

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// reread is how often the application reads its token again: less than the overlap of a
// token that lives for a minute, 6 s.
const reread = 5 * time.Second

// callFor makes a call with the file's token every 100 ms, or 6000 in a longer time, and
// returns how many failed.
func (w *fixture) callFor(d time.Duration) (calls, failed int) {
	return w.callEvery(max(100*time.Millisecond, d/6000), d)
}

func (w *fixture) callEvery(pause, d time.Duration) (calls, failed int) {
	token, read := w.read(), time.Now()
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(pause) {
		if time.Since(read) >= reread {
			token, read = w.read(), time.Now()
		}
		if calls++; !w.alive(token) {
			failed++
		}
	}
	return calls, failed
}

func TestRotationFailsNoCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = time.Minute
		stop := w.start()
		synctest.Wait()
		if calls, failed := w.callFor(10 * time.Minute); failed != 0 || calls != 6000 {
			t.Errorf("%d of %d calls failed, want 0 of 6000", failed, calls)
		}
		if w.made() < 15 || w.made() > 17 {
			t.Errorf("%d tokens in ten minutes, want one for each 38 to 40 s", w.made())
		}
		if w.most() != 2 {
			t.Errorf("%d tokens lived at one time, want 2", w.most())
		}
		if n := w.called("POST /v1/token"); n != 1 {
			t.Errorf("%d requests for a first token", n)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := w.liveTokens(); n != 0 {
			t.Errorf("%d tokens live after the end", n)
		}
	})
}

func TestReplacedTokenLivesForTheOverlap(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for life, want := range map[time.Duration]time.Duration{time.Minute: 6 * time.Second,
		5 * time.Minute: 10 * time.Second, 72 * time.Hour: 10 * time.Second, 0: 10 * time.Second} {
		tok := token{record: record{Obtained: now}}
		if life > 0 {
			tok.Expires = now.Add(life)
		}
		if got := tok.overlap(); got != want {
			t.Errorf("life %s: overlap %s, want %s", life, got, want)
		}
	}
}

func TestOutageOfTheBrokerIsWaitedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage    time.Duration
		mayExpire bool
	}{"shorter than the rest of the life": {outage: 12 * time.Minute}, "longer": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				stop := w.start()
				synctest.Wait()
				<-time.After(35 * time.Minute) // before the first replacement, whose time is random
				down := time.Now()
				w.mu.Lock()
				w.fault = func(string) (*http.Response, bool, error) {
					if time.Since(down) < c.outage {
						return unreachable()
					}
					return nil, false, nil
				}
				w.mu.Unlock()
				_, failed := w.callFor(c.outage + 2*time.Minute)
				if (failed > 0) != c.mayExpire {
					t.Errorf("%d calls failed", failed)
				}
				if _, failed := w.callFor(time.Minute); failed > 0 {
					t.Errorf("%d calls failed after the outage", failed)
				}
				w.stop()
				if err := stop(); err != nil || w.made() != 2 {
					t.Errorf("%v, %d tokens:\n%s", err, w.made(), w.log)
				}
			})
		})
	}
}

func TestRotationOfADeletedTokenRequestsANewOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		stop := w.start()
		synctest.Wait()
		w.mu.Lock()
		clear(w.live)
		w.mu.Unlock()
		<-time.After(w.ttl)
		if !w.alive(w.read()) || w.called("POST /v1/token") != 2 {
			t.Errorf("token is live: %v, %d requests", w.alive(w.read()), w.called("POST /v1/token"))
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusedRotationKeepsTheTokenUntilItExpires(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		start := time.Now()
		var refuse atomic.Bool
		w.fault = func(string) (*http.Response, bool, error) {
			if refuse.Load() {
				return refusal(410, ""), false, nil
			}
			return nil, false, nil
		}
		w.options.Stay = true
		time.AfterFunc(time.Minute, func() { refuse.Store(true) })
		err := w.run(t.Context())
		if _, ok := errors.AsType[*retry.PermanentError](err); !ok ||
			!strings.Contains(err.Error(), "the broker answered 410") {
			t.Errorf("error %v, want the refusal", err)
		}
		if elapsed := time.Since(start); elapsed < w.ttl || elapsed > w.ttl+2*maxPause {
			t.Errorf("ended after %s, want the token's life and a pause", elapsed)
		}
	})
}

func TestVaultTokenIsRenewedWithoutTheBroker(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.ttl, w.period = backend.Vault, time.Hour, time.Hour
		stop := w.start()
		synctest.Wait()
		if _, failed := w.callFor(3 * time.Hour); failed != 0 {
			t.Errorf("%d calls failed", failed)
		}
		if n, renewals := w.called("POST /v1"), w.called("renew"); n != 2 || renewals != 4 {
			t.Errorf("%d calls of the broker, want those of the first token, 2; %d renewals, want 4", n, renewals)
		}
		w.stop()
		if err := stop(); err != nil || w.liveTokens() != 0 {
			t.Errorf("%v, %d live tokens", err, w.liveTokens())
		}
	})
}

func TestOutageOfVaultIsWaitedOut(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.ttl, w.period = backend.Vault, time.Hour, time.Hour
		w.renewErr = errors.New("sealed")
		time.AfterFunc(55*time.Minute, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.renewErr = nil
		})
		stop := w.start()
		synctest.Wait()
		if _, failed := w.callFor(2 * time.Hour); failed != 0 || w.made() != 1 {
			t.Errorf("%d calls failed, %d tokens", failed, w.made())
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTokenThatVaultDoesNotRenewIsRequestedAnew(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.ttl, w.period = backend.Vault, time.Hour, time.Hour
		w.renewErr = consulutil.WithClass(errors.New("403"), retry.Permanent)
		stop := w.start()
		synctest.Wait()
		<-time.After(w.ttl)
		if got := [3]int{w.made(), w.called("renew"), w.called("POST /v1/rotate")}; got != [3]int{2, 1, 0} {
			t.Errorf("tokens, renewals and rotations: got %v, want 2, 1 and 0", got)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTermWaitsForTheApplicationsAndRevokes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ appEnds, want time.Duration }{
		"application stops after 5 s": {5 * time.Second, 5 * time.Second},
		"application does not stop":   {time.Hour, 18 * time.Second}, // 12 s before the stop timeout
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				w.revokeFail = 2
				stop := w.start()
				synctest.Wait()
				token := w.read()
				begin := time.Now()
				time.AfterFunc(c.appEnds, w.stop)
				time.AfterFunc(c.want-time.Millisecond, func() {
					if !w.alive(token) {
						t.Error("the token is revoked while the application runs")
					}
				})
				if err := stop(); err != nil {
					t.Error(err)
				}
				if elapsed := time.Since(begin); elapsed < c.want || elapsed > c.want+3*time.Second {
					t.Errorf("took %s, want %s", elapsed, c.want)
				}
				if w.alive(token) {
					t.Error("the token is live")
				}
				if _, err := os.Stat(w.file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("token file: %v", err)
				}
			})
		})
	}
}

func TestBrokerRevokesWhatTheHolderCannot(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.ttl = backend.ConsulACL, time.Minute
		stop := w.start()
		synctest.Wait()
		<-time.After(50 * time.Second)
		if got := [3]int{w.made(), w.liveTokens(), w.called("POST /v1/revoke")}; got != [3]int{2, 1, 1} {
			t.Errorf("tokens, live tokens and revocations after a rotation: got %v, want 2, 1 and 1", got)
		}
		w.stop()
		if err := stop(); err != nil || w.liveTokens() != 0 {
			t.Errorf("%v, %d live tokens", err, w.liveTokens())
		}
		if strings.Contains(w.log.String(), "not revoked") { // nor what the broker has revoked before
			t.Error(w.log)
		}
	})
}

func TestTokenThatAnotherProcessRevokedIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		stop := w.start()
		synctest.Wait()
		w.mu.Lock()
		w.deny = 1 // a server that does not know the token yet
		w.mu.Unlock()
		<-time.After(3 * time.Minute)
		if w.made() != 1 {
			t.Errorf("one answer that the token is gone was believed")
		}
		w.mu.Lock()
		clear(w.live)
		w.mu.Unlock()
		<-time.After(lookPause + againPause + 5*time.Second)
		if !w.alive(w.read()) || w.called("POST /v1/token") != 2 {
			t.Errorf("token is live: %v, %d requests", w.alive(w.read()), w.called("POST /v1/token"))
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRestartedReceiverContinuesWhereTheLastOneEnded(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		if err := w.run(t.Context()); err != nil { // as one that was killed
			t.Fatal(err)
		}
		<-time.After(w.ttl / 2)
		stop := w.start()
		synctest.Wait()
		if _, failed := w.callFor(w.ttl); failed != 0 {
			t.Errorf("%d calls failed", failed)
		}
		if n := w.called("POST /v1/token"); n != 1 {
			t.Errorf("%d requests for a first token", n)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A receiver that is killed between the two files leaves the record of the next token
// beside the token that applications have.
func TestReceiverKilledWhileItWritesKeepsTheToken(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = 10 * time.Minute
		stop := w.start()
		synctest.Wait()
		first := w.read()
		for w.made() == 1 {
			<-time.After(time.Second)
		}
		record, err := os.ReadFile(w.file + ".json")
		if err != nil || w.read() == first {
			t.Fatalf("no rotation: %v", err)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
		for name, data := range map[string][]byte{w.file: []byte(first), w.file + ".json": record} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.options.Stay = false
		if err := w.run(t.Context()); err != nil || w.read() != first {
			t.Errorf("got %v, and %q in the token file, want %q", err, w.read(), first)
		}
		if got := w.called("POST /v1/token"); got != 1 {
			t.Errorf("got %d requests, want 1", got)
		}
	})
}

// Nothing else may know that a token was replaced when the receiver is killed before it has
// revoked that: the next run rotates at once.
func TestReceiverKilledDuringTheOverlapRotates(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = 10 * time.Minute
		stop := w.start()
		synctest.Wait()
		for w.made() == 1 {
			<-time.After(time.Second)
		}
		files := map[string][]byte{w.file: nil, w.file + ".json": nil}
		for name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = data
		}
		w.mu.Lock()
		w.stopped, w.revokeFail = true, 1000
		w.mu.Unlock()
		if err := stop(); err != nil {
			t.Error(err)
		}
		for name, data := range files {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.mu.Lock()
		w.stopped, w.revokeFail = false, 0
		w.mu.Unlock()
		stop = w.start()
		<-time.After(2 * time.Second)
		if w.made() != 3 || w.called("POST /v1/token") != 1 {
			t.Errorf("%d tokens, %d requests for a first one; want a rotation", w.made(), w.called("POST /v1/token"))
		}
		<-time.After(time.Minute)
		w.stop()
		if err := stop(); err != nil || w.made() != 3 {
			t.Errorf("%v, %d tokens", err, w.made())
		}
	})
}
