package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{taskGetsItsToken, unknownTaskGetsNothing, unsealedRequestIsRefusedUnlessAllowed,
		oneRequestOfATaskAtATime, restartedContainerGetsAnotherTokenThrice,
		earlierTokenThatCannotBeRevokedBlocksAnother, handleUsedTwiceRevokesAndAlarms, stolenHandleIsWorthless, unknownHandle, replayedRequestIsRefused,
		requestsOfATaskAreLimited, requestsOfAnAddressAreLimited, longBodyIsRefused, lostAnswersAreNoRestartsOfTheTask})
	inEach(t, []scenario{originalRequestRequiresNameAndNamespace, otherMethodsOfAnEndpointAreRefused,
		originalRequestPushesUnsealedHandle}, unsealed)
	inEach(t, []scenario{pushIsSentToTheTask}, proxied, unnamed)
	inEach(t, []scenario{requestFromElsewhereIsRefused}, proxied)
}

// A backend makes the token at the redemption or, as Vault, before it.
func TestRequestsOfBothKindsOfBackends(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"redeems": func(*Options) {},
		"wraps":   func(o *Options) { o.Backend.(*fakeBackend).wraps = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEach(t, []scenario{handleExpiresAfterTwoMinutes, acceptedPushWithoutRedemptionAlarms,
				taskWithValidTokenKeepsIt, requestOfTheTaskReplacesOneThatWasNotAnswered}, change)
		})
	}
}

func taskGetsItsToken(t *testing.T, w *fixture) {
	c := w.task(1)
	id := accepted(t, c.ask())
	advance(time.Second)
	if got, want := w.decisions(id), "verified wrapped pushing pushing accepted active"; got != want {
		t.Errorf("decisions %q, want %q", got, want)
	}
	if got := c.held(); got != "secret-of-accessor-1" || c.token.Accessor != "accessor-1" {
		t.Errorf("token %q", got)
	}
	testkit.Equal(t, "request", w.state(id), receiver.Status{RequestID: id, State: "active", Attempts: 1})
	r := w.backend.issued[0]
	want := backend.Task{
		ARN: c.arn, Cluster: clusterARN, Family: "web", Revision: 7, Address: netip.MustParseAddr("10.0.1.1"),
		AvailabilityZone: "us-east-1a", Name: "web-service",
	}
	testkit.Equal(t, "task", r.Task, want)
	testkit.Equal(t, "policies", r.Policies, []string{"app"})
	testkit.Equal(t, "TTL", r.TTL, time.Hour)
}

func unknownTaskGetsNothing(t *testing.T, w *fixture) {
	c := w.task(1)
	delete(w.ecs.tasks, c.arn)
	wantRefused(t, c.ask(), http.StatusNotFound, "unknown_task")
	c.arn = "arn:aws:ecs:us-east-1:999999999999:task/shop/" + strings.Repeat("0", 32)
	wantRefused(t, c.ask(), http.StatusNotFound, "unknown_task")
	if len(w.backend.issued) != 0 || len(w.ecs.calls) != 1 {
		t.Errorf("%d grants, %d calls of ECS", len(w.backend.issued), len(w.ecs.calls))
	}
}

func originalRequestRequiresNameAndNamespace(t *testing.T, w *fixture) {
	c := w.task(1)
	for _, query := range []string{"", "?name=a", "?namespace=shop"} {
		wantRefused(t, c.call(http.MethodGet, "/token"+query, c.ip, nil), http.StatusBadRequest, "query")
	}
}

func otherMethodsOfAnEndpointAreRefused(t *testing.T, w *fixture) {
	c := w.task(1)
	for _, tt := range []struct{ method, target, allow string }{
		{http.MethodHead, "/token?name=" + c.arn + "&namespace=shop", "GET"}, {http.MethodPost, "/token", "GET"},
		{http.MethodGet, "/v1/token", "POST"}, {http.MethodDelete, "/v1/token/r1", "GET"},
		{http.MethodPost, "/v1/health", "GET"},
	} {
		answer := c.call(tt.method, tt.target, c.ip, nil)
		wantRefused(t, answer, http.StatusMethodNotAllowed, "method")
		if got := answer.Header().Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow %q, want %s", tt.method, tt.target, got, tt.allow)
		}
	}
	wantRefused(t, c.call(http.MethodGet, "/v1/none", c.ip, nil), http.StatusNotFound, "no_endpoint")
	if answer := c.call(http.MethodHead, "/v1/health", c.ip, nil); answer.Code != http.StatusOK {
		t.Errorf("HEAD /v1/health: %d", answer.Code)
	}
}

func unsealed(o *Options) { o.AllowUnsealed = true }

// originalRequestPushesUnsealedHandle: the push of the original form has its keys and no others: they
// are enough to redeem it.
func originalRequestPushesUnsealedHandle(t *testing.T, w *fixture) {
	c := w.task(1)
	var pushed map[string]any
	w.listen("10.0.1.1:8080", func(r *http.Request) int {
		if r.Method != http.MethodPost || r.URL.Path != "/" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &pushed); err != nil {
			t.Error(err)
		}
		request := fmt.Sprintf(`{"handle": %q}`, pushed["token"])
		if answer := c.call(http.MethodPost, "/v1/unwrap", c.ip, []byte(request)); answer.Code != http.StatusOK {
			t.Errorf("unwrap: %d %s", answer.Code, answer.Body)
		}
		return http.StatusOK
	})
	id := accepted(t, c.call(http.MethodGet, "/token?name="+c.arn[len(c.arn)-32:]+"&namespace=shop", c.ip, nil))
	advance(time.Second)
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(pushed["creation_time"]))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("creation_time %v, %v", pushed["creation_time"], err)
	}
	testkit.Equal(t, "push", pushed, map[string]any{"ttl": 120.0, "wrapped_accessor": "accessor-1",
		"token": pushed["token"], "creation_time": pushed["creation_time"]})
	w.wantState(id, "active")
}

func unsealedRequestIsRefusedUnlessAllowed(t *testing.T, w *fixture) {
	c := w.task(1)
	wantRefused(t, c.call(http.MethodGet, "/token?name="+c.arn+"&namespace=shop", c.ip, nil), http.StatusBadRequest,
		"unsealed")
}

func handleExpiresAfterTwoMinutes(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(r *http.Request) int {
		c.open(r)
		return http.StatusServiceUnavailable
	})
	id := accepted(t, c.ask())
	advance(121 * time.Second)
	wantRefused(t, c.unwrap(id), http.StatusGone, "expired")
	w.wantState(id, "expired")
	c.wantLive()
	if s := w.state(id); s.Attempts < 14 || s.Attempts > 24 {
		t.Errorf("%d attempts, want one at 0, 0.5, 1.5, 3.5, 7.5 s and every 8 s +-20 %%", s.Attempts)
	}
}

// pushIsSentToTheTask: the answer goes to the caller, the push to the task.
func pushIsSentToTheTask(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.99.0.1:8080", func(*http.Request) int { t.Error("pushed to the caller"); return http.StatusOK })
	w.call(http.MethodPost, "/v1/token", "10.99.0.1", c.request())
	advance(time.Second)
	if c.held() == "" {
		t.Error("the task got no token")
	}
}

func requestFromElsewhereIsRefused(t *testing.T, w *fixture) {
	c := w.task(1)
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.2", c.request()), http.StatusUnauthorized,
		"address")
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.2", c.request(), "X-Forwarded-For", c.ip),
		http.StatusUnauthorized, "address")
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.99.0.1", c.request(), "X-Forwarded-For",
		c.ip+", 10.0.1.2"), http.StatusUnauthorized, "address")
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.99.0.1", c.request(), "X-Forwarded-For", "x"),
		http.StatusBadRequest, "address")
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.99.0.1", c.request()), http.StatusBadRequest, "address")
	accepted(t, w.call(http.MethodPost, "/v1/token", "10.99.0.1", c.request(), "X-Forwarded-For",
		"10.0.1.2, "+c.ip))
	if log := w.log.String(); strings.Count(log, "sent no X-Forwarded-For") != 1 {
		t.Errorf("log %s", log)
	}
}

// proxied puts a proxy before the broker, and unnamed lets it name no addresses.
func proxied(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")} }

func unnamed(o *Options) { o.AllowUnknownAddress = true }

func acceptedPushWithoutRedemptionAlarms(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(r *http.Request) int { c.open(r); return http.StatusOK })
	id := accepted(t, c.ask())
	advance(9 * time.Second)
	w.wantState(id, "accepted")
	advance(2 * time.Second)
	if got, want := w.decisions(id), "verified wrapped pushing accepted revoked!"; got != want {
		t.Errorf("decisions %q, want %q", got, want)
	}
	wantRefused(t, c.unwrap(id), http.StatusGone, "expired")
	c.wantLive()
}

func taskWithValidTokenKeepsIt(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	id := accepted(t, c.ask())
	advance(time.Second)
	w.wantState(id, "conflict")
	c.wantLive("secret-of-accessor-1")
	if !slices.Equal(w.backend.revoked, []string{"accessor-2"}) {
		t.Errorf("revoked %v", w.backend.revoked)
	}
	c.port = 9090
	wantRefused(t, c.ask(), http.StatusConflict, "delivered")
}

func restartedContainerGetsAnotherTokenThrice(t *testing.T, w *fixture) {
	c := w.task(1)
	for range 4 {
		c.lose()
		id := accepted(t, c.ask())
		advance(2 * time.Minute)
		w.wantState(id, "active")
		c.wantLive(c.held())
	}
	c.lose()
	wantRefused(t, c.ask(), http.StatusTooManyRequests, "regrants")
}

func earlierTokenThatCannotBeRevokedBlocksAnother(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	c.lose()
	down := true
	w.backend.fault = func(op string) error {
		if op == "revoke" && down {
			return transient()
		}
		return nil
	}
	id := accepted(t, c.ask())
	advance(20 * time.Second)
	w.wantState(id, "pushing")
	c.wantLive("secret-of-accessor-1")
	w.backend.mu.Lock()
	down = false
	w.backend.mu.Unlock()
	advance(20 * time.Second)
	c.wantLive(c.held())
}

func handleUsedTwiceRevokesAndAlarms(t *testing.T, w *fixture) {
	c := w.task(1)
	id := accepted(t, c.ask())
	advance(time.Second)
	wantRefused(t, c.unwrap(id), http.StatusGone, "used")
	advance(time.Second)
	w.wantState(id, "revoked")
	c.wantLive()
	if got := w.decisions(id); !strings.HasSuffix(got, "active revoked!") {
		t.Errorf("decisions %q", got)
	}
}

func stolenHandleIsWorthless(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(r *http.Request) int { c.open(r); return http.StatusServiceUnavailable })
	id := accepted(t, c.ask())
	advance(time.Second)
	c.ip = "10.0.1.66"
	wantRefused(t, c.unwrap(id), http.StatusUnauthorized, "address")
	c.ip = "10.0.1.1"
	wantRefused(t, c.unwrap(id), http.StatusGone, "expired")
	if got := w.decisions(id); !strings.HasSuffix(got, "pushing revoked!") {
		t.Errorf("decisions %q", got)
	}
}

func unknownHandle(t *testing.T, w *fixture) {
	c := w.task(1)
	id := accepted(t, c.ask())
	c.handle = receiver.NewHandle()
	wantRefused(t, c.unwrap(id), http.StatusNotFound, "unknown_handle")
	wantRefused(t, c.unwrap("none"), http.StatusNotFound, "unknown_handle")
	advance(time.Second)
	w.wantState(id, "active")
}

func replayedRequestIsRefused(t *testing.T, w *fixture) {
	c := w.task(1)
	body := c.request()
	accepted(t, c.call(http.MethodPost, "/v1/token", c.ip, body))
	wantRefused(t, c.call(http.MethodPost, "/v1/token", c.ip, body), http.StatusConflict, "replayed")
}

func requestsOfATaskAreLimited(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(*http.Request) int { return http.StatusForbidden })
	for range 6 {
		accepted(t, c.ask())
		advance(time.Second)
	}
	wantRefused(t, c.ask(), http.StatusTooManyRequests, "rate")
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.7", c.request()), http.StatusUnauthorized,
		"address")
	advance(100 * time.Second)
	accepted(t, c.ask())
}

func requestsOfAnAddressAreLimited(t *testing.T, w *fixture) {
	for range 10 {
		wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.7", nil), http.StatusBadRequest, "body")
	}
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.7", nil), http.StatusTooManyRequests, "rate")
	advance(200 * time.Millisecond)
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.7", nil), http.StatusBadRequest, "body")
}

func longBodyIsRefused(t *testing.T, w *fixture) {
	wantRefused(t, w.call(http.MethodPost, "/v1/token", "10.0.1.7", make([]byte, 16<<10+1)),
		http.StatusRequestEntityTooLarge, "too_long")
}
