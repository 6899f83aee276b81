package receiver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func answering(serve func(http.ResponseWriter)) http.RoundTripper {
	return testkit.RoundTripper(func(*http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		serve(rec)
		return rec.Result(), nil
	})
}

func TestBrokerAddressMustProtectSecrets(t *testing.T) {
	t.Parallel()
	for address, valid := range map[string]bool{
		"https://broker.internal:8443": true, "https://broker/prefix/": true, "http://127.0.0.1:8443": true,
		"http://[::1]:80": true, "http://localhost:80": true,
		"": false, "broker:8443": false, "http://broker": false, "http://10.0.0.1": false, "https://": false,
		"https://user:pass@broker": false,
		"https://broker?a=b":       false, "ftp://127.0.0.1": false, "http://localhost.example.com": false,
	} {
		_, err := NewClient(ClientOptions{Address: address})
		if (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	if _, err := NewClient(ClientOptions{Address: "https://broker", CAPEM: []byte("x")}); err == nil {
		t.Error("CA certificates that are none are accepted")
	}
}

// A follower answers 307 with the leader's address: the bearer and the body go there.
func TestFollowerIsLeft(t *testing.T) {
	t.Parallel()
	var seen []string
	transport := testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		seen = append(seen, r.Method+" "+r.URL.Host+" "+r.Header.Get("Authorization"))
		rec := httptest.NewRecorder()
		if r.URL.Host == "follower" {
			rec.Header().Set("Location", "https://leader"+r.URL.Path)
			rec.WriteHeader(http.StatusTemporaryRedirect)
		} else if _, err := DecodeTokenRequest(body); err != nil {
			t.Error(err)
		} else {
			rec.WriteHeader(http.StatusAccepted)
			_, _ = rec.WriteString(`{"request_id":"r1","status_url":""}`)
		}
		return rec.Result(), nil
	})
	broker, err := NewClient(ClientOptions{Address: "https://follower", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	request := TokenRequest{Cluster: "shop", TaskARN: taskARN, CallbackPort: 80, Nonce: NewNonce()}
	if a, err := broker.request(t.Context(), secret.New("token"), request); err != nil || a.RequestID != "r1" {
		t.Errorf("%+v, %v", a, err)
	}
	if got := strings.Join(seen, "; "); got != "POST follower Bearer token; POST leader Bearer token" {
		t.Errorf("requests: %s", got)
	}
}

func TestSecretsAreNotSentToWhereTheyCanBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   int
		location string
	}{{307, "http://leader/v1/unwrap"}, {302, "https://leader/v1/unwrap"}, {307, "https://broker/v1/unwrap"}} {
		requests := 0
		broker, err := NewClient(ClientOptions{Address: "https://broker",
			Transport: answering(func(rw http.ResponseWriter) {
				requests++
				rw.Header().Set("Location", c.location)
				rw.WriteHeader(c.status)
			})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = broker.unwrap(t.Context(), UnwrapRequest{Handle: secret.New("handle"), RequestID: "r"})
		if err == nil || strings.Contains(err.Error(), "handle-") {
			t.Errorf("%d to %s: got %v, want an error without the handle", c.status, c.location, err)
		}
		if requests > maxRedirects+1 {
			t.Errorf("%d to %s: got %d requests, want at most %d", c.status, c.location, requests, maxRedirects+1)
		}
	}
}

func TestTokenThatTheBrokerDoesNotKnowIsNotReportedAsRevoked(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		w.backend = backend.ConsulACL
		stop := w.start()
		synctest.Wait()
		if err := w.revoke(t.Context(), secret.New(w.read())); err != nil {
			t.Fatal(err)
		}
		w.stop()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if text := w.log.String(); !strings.Contains(text, "the broker does not know the token") ||
			strings.Contains(text, "token revoked") {
			t.Error(text)
		}
	})
}

// A load balancer in front of the broker, or a page in its place, revokes nothing and refuses nothing.
func TestAnswerThatIsNotTheBrokersIsRetried(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 204, 400, 401, 403, 404, 409, 502} {
		for _, body := range []string{"", "<html>back soon</html>", "{}", `{"message": "Forbidden"}`} {
			b, err := NewClient(ClientOptions{Address: "https://broker",
				Transport: answering(func(rw http.ResponseWriter) {
					rw.WriteHeader(status)
					_, _ = io.WriteString(rw, body)
				})})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.revoke(t.Context(), secret.New("x")); err == nil || !consulutil.Classify(err).Retryable() {
				t.Errorf("revoke: %d %q: %v, want an error that is retried", status, body, err)
			}
		}
	}
}

// A proxy's refusal is no reason to end, or to request a token without the current one.
func TestRefusalThatIsNotTheBrokersKeepsTheBearer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 422} {
		d := &delivery{receiver: &receiver{deps: Deps{Log: hclog.NewNullLogger()}}, bearer: secret.New("x")}
		class := d.class(&RefusedError{Status: status})
		if class != retry.NotYet {
			t.Errorf("%d: class %v, want %v", status, class, retry.NotYet)
		}
		if d.bearer.Empty() {
			t.Errorf("%d: the bearer was dropped", status)
		}
	}
}
