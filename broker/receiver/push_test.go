package receiver

import (
	"errors"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// pending starts a one-shot receiver whose request has been accepted, and returns its
// grant and the result.
func (w *fixture) pending(t *testing.T) (*fakeGrant, <-chan error) {
	w.noPush = true
	result := make(chan error, 1)
	w.running.Go(func() { result <- w.run(t.Context()) })
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grants["r1"], result
}

// answers posts a push and returns the status.
func (w *fixture) answers(t *testing.T, p Push) int {
	t.Helper()
	body, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	code, err := w.post(body)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestForeignPushesAreRefusedAndTheRequestContinues(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		push := w.push(g)
		otherKey := *g
		key, err := NewKey()
		if err != nil {
			t.Fatal(err)
		}
		otherKey.request.PublicKey = key.Public()
		otherTask := *g
		otherTask.request.TaskARN = taskARN + "0"
		otherNonce, noNonce, unsealed := push, push, push
		otherNonce.Nonce, noNonce.Nonce, unsealed.Token = NewNonce(), nil, g.handle
		for name, p := range map[string]Push{
			"nonce of another request": otherNonce, "no nonce": noNonce, "not sealed": unsealed,
			"sealed to another key": w.push(&otherKey), "sealed for another task": w.push(&otherTask),
		} {
			if got := w.answers(t, p); got != 403 {
				t.Errorf("%s: answered %d, want 403", name, got)
			}
		}
		for _, body := range []string{"", "{}", "x", `{"token":"t","ttl":1,"admin":true}`,
			strings.Repeat(" ", MaxBody+1)} {
			if got, err := w.post([]byte(body)); got != 400 || err != nil {
				t.Errorf("body %.20q: answered %d, %v; want 400", body, got, err)
			}
		}
		if w.called("POST /v1/unwrap") != 0 {
			t.Error("a foreign push caused a redemption")
		}
		if got := w.answers(t, push); got != 200 {
			t.Errorf("the own push was answered %d", got)
		}
		if err := <-result; err != nil || w.read() != "secret-1-of-the-task" {
			t.Errorf("%v, file has %q", err, w.read())
		}
	})
}

func TestOnlyPostAtTheRootIsServed(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: w.dial}}
		for _, path := range []string{"/", "/token", "/v1/token"} {
			resp, err := client.Get("http://10.0.0.1:8080" + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 404 {
				t.Errorf("GET %s: %d", path, resp.StatusCode)
			}
		}
		if got := w.answers(t, w.push(g)); got != 200 {
			t.Errorf("answered %d", got)
		}
		<-result
	})
}

// Two pushes at once: one redeems, and the other finds the token valid.
func TestSecondPushIsAConflict(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		w.mu.Lock()
		w.fault = func(op string) (*http.Response, bool, error) {
			if op == "POST /v1/unwrap" {
				<-time.After(time.Second)
			}
			return nil, false, nil
		}
		w.mu.Unlock()
		codes := make(chan int, 2)
		for range 2 {
			w.running.Go(func() { codes <- w.answers(t, w.push(g)) })
		}
		got := []int{<-codes, <-codes}
		slices.Sort(got)
		if !slices.Equal(got, []int{200, 409}) {
			t.Errorf("answered %v, want 200 and 409", got)
		}
		if err := <-result; err != nil || w.called("POST /v1/unwrap") != 1 {
			t.Errorf("%v, %d redemptions", err, w.called("POST /v1/unwrap"))
		}
	})
}

// While a rotation is under way, a push that is not for it meets a valid token.
func TestReplayedPushDuringARotationIsAConflict(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = time.Minute
		stop := w.start()
		synctest.Wait()
		w.mu.Lock()
		w.noPush = true
		replay := w.push(w.grants["r1"])
		w.mu.Unlock()
		<-time.After(45 * time.Second)
		if w.called("POST /v1/rotate") != 1 {
			t.Fatalf("%d rotations", w.called("POST /v1/rotate"))
		}
		if got := w.answers(t, replay); got != 409 {
			t.Errorf("answered %d, want 409", got)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRedemptionIsRepeatedWhileTheHandleIsGood(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.fault = first("POST /v1/unwrap", status(503, ""), status(429, "1"))
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(w.answered(), []int{503, 503, 200}) || w.called("POST /v1/token") != 1 {
			t.Errorf("pushes were answered %v, with %d requests", w.answered(), w.called("POST /v1/token"))
		}
	})
}

// A handle that another process redeemed, or an answer that is lost, costs the handle:
// the receiver requests another one, and the first token does not stay.
func TestLostHandleLeadsToAnotherRequest(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func() (*http.Response, bool, error){
		"used by another process": func() (*http.Response, bool, error) {
			rec := httptest.NewRecorder()
			refuse(rec, http.StatusGone, HandleUsed, "the handle was used before")
			return rec.Result(), false, nil
		},
		"expired": status(410, ""), "unknown": status(404, ""), "answer lost": lost,
		"timeout of a proxy": status(504, ""),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *fixture) {
				w.fault = first("POST /v1/unwrap", fault)
				if err := w.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if w.called("POST /v1/token") != 2 || !w.alive(w.read()) {
					t.Errorf("%d requests, the file's token is live: %v", w.called("POST /v1/token"), w.alive(w.read()))
				}
				if alarm := strings.Contains(w.log.String(),
					"[ERROR] the handle was redeemed by another process"); alarm != (name == "used by another process") {
					t.Errorf("alarm logged: %v", alarm)
				}
			})
		})
	}
}

// What the broker refuses at redemption is refused for another request, too.
func TestRefusedRedemptionEndsTheCommandWithItsCause(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.fault = first("POST /v1/unwrap", status(422, ""))
		err := w.run(t.Context())
		if _, ok := errors.AsType[*retry.PermanentError](err); !ok ||
			!strings.Contains(err.Error(),
				"the handle of request r1 was lost: redeem the handle: the broker answered 422 (fault): not now") {
			t.Errorf("error %v, want a permanent one with the cause", err)
		}
		if n := w.called("POST /v1/token"); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// No access control list can have this user, as on a file system without them.
func TestFileThatItsReaderCannotReadIsNotLeft(t *testing.T) {
	t.Parallel()
	none := uint32(math.MaxUint32)
	f := files{filepath.Join(t.TempDir(), "token"), &none}
	for range 2 {
		if _, err := f.write(token{secret: secret.New("s")}, secret.Value{}); err == nil ||
			!strings.Contains(err.Error(), "let user 4294967295 read") {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(f.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is there: %v", err)
		}
	}
}

func TestTokenThatCannotBeWrittenIsRevoked(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		// A directory in the place of the token file.
		if err := os.Mkdir(w.file, 0o700); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.revokeFail = 100 // the receiver itself could not revoke it in time
		w.mu.Unlock()
		start, got := time.Now(), w.answers(t, w.push(g))
		if got != 502 || time.Since(start) > redeemLimit+readyLimit {
			t.Errorf("answered %d after %s, want 502 while the broker waits for it", got, time.Since(start))
		}
		if w.final(g, got, nil); w.liveTokens() != 0 {
			t.Errorf("%d tokens are live", w.liveTokens())
		}
		if err := os.Remove(w.file); err != nil {
			t.Fatal(err)
		}
		w.setNoPush(false)
		if err := <-result; err != nil || w.read() != "secret-2-of-the-task" {
			t.Errorf("%v, file has %q", err, w.read())
		}
	})
}

// The directory is missing, since root writes to any directory that is there.
func TestNoTokenIsRequestedForAFileThatCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		stop, dir := w.start(), filepath.Dir(w.file)
		synctest.Wait()
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		<-time.After(59 * time.Minute)
		if made, asked := w.made(), w.called("POST /v1/rotate"); made != 1 || asked != 0 {
			t.Errorf("%d tokens and %d rotations without a directory", made, asked)
		}
		if !strings.Contains(w.log.String(), "directory "+dir+" does not exist") {
			t.Errorf("the log does not name the cause:\n%s", w.log)
		}
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		if _, failed := w.callFor(2 * time.Minute); failed > 0 || w.made() != 2 {
			t.Errorf("%d calls failed, %d tokens", failed, w.made())
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestHandleIsNotRedeemedForAFileThatCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		dir := filepath.Dir(w.file)
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Fatal(err)
		}
		if got := w.answers(t, w.push(g)); got != http.StatusServiceUnavailable || w.made() != 0 {
			t.Errorf("answered %d, %d tokens; want 503 and none", got, w.made())
		}
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Fatal(err)
		}
		if got := w.answers(t, w.push(g)); got != http.StatusOK || w.made() != 1 {
			t.Errorf("answered %d, %d tokens; want 200 and one", got, w.made())
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func TestExpiryIsByTheClockOfThisHost(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		for _, skew := range []time.Duration{-time.Hour, 0, time.Second, time.Hour} {
			broker, err := NewClient(ClientOptions{Address: "https://broker",
				Transport: answering(func(rw http.ResponseWriter) {
					theirs := time.Now().Add(skew)
					rw.Header().Set("Date", theirs.UTC().Format(http.TimeFormat))
					body, err := Unwrapped{Secret: secret.New("s"), Accessor: "a",
						Expires: theirs.Add(time.Minute)}.Encode()
					if err != nil {
						t.Error(err)
					}
					_, _ = rw.Write(body)
				})})
			if err != nil {
				t.Fatal(err)
			}
			u, err := broker.unwrap(t.Context(), UnwrapRequest{Handle: secret.New("h"), RequestID: "r"})
			if life := time.Until(u.Expires); err != nil || (life-time.Minute).Abs() > time.Second {
				t.Errorf("skew %s: life %s, %v; want 1m", skew, life, err)
			}
		}
	})
}

// The broker redeems after the receiver has given up: a later push must not look delivered.
func TestPushOfALostHandleIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = 10 * time.Minute
		stop := w.start()
		synctest.Wait()
		w.mu.Lock()
		w.noPush = true
		w.fault = func(op string) (*http.Response, bool, error) {
			if op == "POST /v1/unwrap" {
				return nil, false, errHang
			}
			return nil, false, nil
		}
		w.mu.Unlock()
		<-time.After(7 * time.Minute)
		w.mu.Lock()
		push := w.push(w.grants["r2"])
		w.mu.Unlock()
		if got := []int{w.answers(t, push), w.answers(t, push)}; !slices.Equal(got, []int{502, 403}) {
			t.Errorf("answered %v, want 502 and then 403", got)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
