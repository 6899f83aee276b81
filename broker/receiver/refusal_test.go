package receiver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
)

// The broker answers 503 after the time that it takes for a revocation: its holder asks again.
func TestRevocationThatLastsIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend = backend.ConsulACL
		stop := w.start()
		synctest.Wait()
		slow := func() (*http.Response, bool, error) {
			<-time.After(RevocationLimit)
			return refusal(503, "2"), false, nil
		}
		w.mu.Lock()
		w.stopped, w.fault = true, first("POST /v1/revoke", slow, slow)
		w.mu.Unlock()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := w.called("POST /v1/revoke"); n != 3 || w.liveTokens() != 0 {
			t.Errorf("%d questions, %d tokens live", n, w.liveTokens())
		}
	})
}

// outlivesFault lets a task get a token of one minute, and then has the fault for longer
// than the token's life: there is a new token once the fault is over.
func outlivesFault(t *testing.T, fault func(op string) (*http.Response, bool, error)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *fixture) {
		w.ttl = time.Minute
		stop := w.start()
		synctest.Wait()
		w.mu.Lock()
		w.fault = fault
		w.mu.Unlock()
		<-time.After(5 * time.Minute)
		if n := w.liveTokens(); n != 0 {
			t.Fatalf("%d tokens live", n)
		}
		w.mu.Lock()
		w.fault = nil
		w.mu.Unlock()
		<-time.After(time.Minute)
		if !w.alive(w.read()) {
			t.Error("no token after the fault")
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A task that had a token waits until the operator has mended the backend; one that starts
// ends with the cause.
func TestRefusalOfTheBackendIsWaitedForWithAToken(t *testing.T) {
	outlivesFault(t, func(op string) (*http.Response, bool, error) {
		if op != "POST /v1/unwrap" {
			return nil, false, nil
		}
		rec := httptest.NewRecorder()
		refuse(rec, 422, BackendFailed, "the broker lacks a privilege")
		return rec.Result(), false, nil
	})
}

// The certificate of the broker has expired, and is replaced when the task's token is over.
func TestExpiredCertificateIsWaitedForWithAToken(t *testing.T) {
	outlivesFault(t, func(string) (*http.Response, bool, error) {
		return nil, false, &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
	})
}

func TestRefusedRevocationOfATokenWithoutExpiryIsLeftToTheBroker(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend, w.endless, w.fault = backend.ConsulACL, true, first("POST /v1/revoke", status(422, ""))
		stop := w.start()
		synctest.Wait()
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if log := w.log.String(); !strings.Contains(log, "the broker revokes it when the task has stopped") ||
			strings.Contains(log, "ends when it expires") {
			t.Error(log)
		}
	})
}

func TestEndOfATokenIsLoggedInRFC3339(t *testing.T) {
	t.Parallel()
	for want, expires := range map[string]time.Time{
		"never":                {},
		"2026-01-02T03:04:05Z": time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("CET", 3600)),
	} {
		if got := (record{Expires: expires}).end(); got != want {
			t.Errorf("%s is logged as %s, want %s", expires, got, want)
		}
	}
}
