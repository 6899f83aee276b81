package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestTokenHidesItsSecret(t *testing.T) {
	t.Parallel()
	token := Token{Accessor: "a-1", Secret: "s-1"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, token); got != "token a-1" {
			t.Errorf("%s = %s", verb, got)
		}
	}
}

func TestLoginRequest(t *testing.T) {
	t.Parallel()
	var got http.Request
	var body strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = *r
		b := make([]byte, 1024)
		n, _ := r.Body.Read(b)
		body.Write(b[:n])
		w.Write([]byte(`{"AccessorID":"a","SecretID":"s"}`))
	}))
	defer server.Close()
	token, err := Login(context.Background(), newClient(t, Options{Address: server.URL}),
		LoginParams{Method: "iam", Bearer: "b", Partition: "part", Meta: map[string]string{"k": "v"}})
	if err != nil || token != (Token{Accessor: "a", Secret: "s"}) {
		t.Fatalf("token = %#v, %v", token, err)
	}
	if got.Method != "POST" || got.URL.String() != "/v1/acl/login?partition=part" {
		t.Errorf("request = %s %s", got.Method, got.URL)
	}
	if want := `{"AuthMethod":"iam","BearerToken":"b","Meta":{"k":"v"}}` + "\n"; body.String() != want {
		t.Errorf("body = %s, want %s", body.String(), want)
	}
}

func TestLoginWithoutTokenInTheAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{}`)) }))
	defer server.Close()
	_, err := Login(context.Background(), newClient(t, Options{Address: server.URL}), LoginParams{Method: "iam"})
	if err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("error = %v", err)
	}
}

// TestLoginAnswerIsNotCutOff: TERM between request and answer must
// not lose the token that the server is making.
func TestLoginAnswerIsNotCutOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		select {
		case <-r.Context().Done():
		case <-time.After(100 * time.Millisecond): // long enough for a cut to arrive
			w.Write([]byte(`{"AccessorID":"a","SecretID":"s"}`))
		}
	}))
	defer server.Close()
	token, err := Login(ctx, newClient(t, Options{Address: server.URL}), LoginParams{Method: "iam"})
	if err != nil || token.Secret != "s" {
		t.Errorf("token = %#v, %v, want it in spite of the signal", token, err)
	}
}

func TestLoginEndsWithItsContextBeforeItIsSent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := Login(ctx, newClient(t, Options{Address: "192.0.2.1:1", DialContext: dial}), LoginParams{Method: "iam"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		want   bool
	}{
		{200, "true", true},
		{403, "ACL not found", true},
		{404, "not found", false},
		{403, "ACL system must be bootstrapped before making any requests that require authorization: ACL not found",
			false},
		{403, "Permission denied: token wasn't created via login", false},
		{500, "No cluster leader", false},
	}
	for _, tt := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(defaultPolicyHeader, "deny")
			if r.URL.Path == "/v1/acl/token/self" && tt.status == 403 {
				http.Error(w, tt.body, http.StatusForbidden)
				return
			}
			testkit.Equal(t, "request", r.Method+" "+r.URL.Path, "POST /v1/acl/logout")
			testkit.Equal(t, "token", r.Header.Get("X-Consul-Token"), "s")
			w.WriteHeader(tt.status)
			w.Write([]byte(tt.body))
		}))
		err := Logout(context.Background(), newClient(t, Options{Address: server.URL}), "s")
		server.Close()
		if (err == nil) != tt.want {
			t.Errorf("%d %s: error = %v", tt.status, tt.body, err)
		}
	}
}

// Regression: a server that had just been started again said that
// it knew no such token, health-sync took that for success, and the token stayed.
func TestLogoutRetriesWhileTheServerHasNoLeader(t *testing.T) {
	t.Parallel()
	started := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(defaultPolicyHeader, "deny")
		switch {
		case r.Header.Get("X-Consul-Token") != "s":
			t.Errorf("request = %s %s", r.Method, r.URL)
		case r.URL.Path == "/v1/acl/logout" && !started:
			http.Error(w, "ACL not found", http.StatusForbidden)
		case r.URL.Path == "/v1/acl/logout":
			w.Write([]byte("true"))
		case !r.URL.Query().Has("consistent"):
			t.Errorf("request = %s %s: want a consistent read", r.Method, r.URL)
		default:
			started = true // it waits until then
			w.Write([]byte(`{"AccessorID": "a", "SecretID": "s"}`))
		}
	}))
	defer server.Close()
	c := newClient(t, Options{Address: server.URL})
	if err := Logout(t.Context(), c, "s"); err == nil || Classify(err) != retry.NotYet {
		t.Errorf("while it starts: %v, want an error that is worth another attempt", err)
	}
	if err := Logout(t.Context(), c, "s"); err != nil {
		t.Errorf("when it has: %v", err)
	}
}

func TestLogoutUnknownTokenRealServer(t *testing.T) {
	t.Parallel()
	if err := Logout(context.Background(), client(t, secured, ""), strangeToken); err != nil {
		t.Errorf("logout of an unknown token = %v, want success", err)
	}
}

// pipes is a listener without sockets, so that a server can be in a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	p.conns <- b
	return a, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// lagging waits for a token that the server knows after lag (never if
// negative), and returns how long that took in bubble time.
func lagging(
	t *testing.T, ctx context.Context, lag time.Duration, status int, answer string,
) (took time.Duration, reads int32, err error) {
	t.Helper()
	start := time.Now()
	var count atomic.Int32
	p := newPipes()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		_, stale := r.URL.Query()["stale"]
		testkit.Equal(t, "stale read", stale, true)
		testkit.Equal(t, "request", r.URL.Path+" "+r.Header.Get("X-Consul-Token"), "/v1/acl/token/self new")
		if lag >= 0 && time.Since(start) >= lag {
			w.Write([]byte(`{"AccessorID":"a"}`))
			return
		}
		w.WriteHeader(status)
		w.Write([]byte(answer))
	})}
	go server.Serve(p)
	defer server.Close()
	c := newClient(t, Options{Address: "consul:8500", DialContext: p.Dial})
	err = WaitReplicated(ctx, c, "new", hclog.NewNullLogger())
	return time.Since(start), count.Load(), err
}

// Version 0.6 passed 50, 100 and 500 ms and failed 2.5 s.
func TestWaitReplicatedOutlastsTheLag(t *testing.T) {
	const ms = time.Millisecond
	for _, lag := range []time.Duration{0, 50 * ms, 500 * ms, 2500 * ms, 9400 * ms} {
		t.Run(lag.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took, _, err := lagging(t, t.Context(), lag, 403, "token does not exist: ACL not found")
				if err != nil {
					t.Error(err)
				}
				longest := lag + min(max(replicationPause, lag/8), replicationPauseMax)
				if took < lag || took > longest {
					t.Errorf("took %s, want %s to %s", took, lag, longest)
				}
			})
		})
	}
}

func TestWaitReplicatedSurvivesServerFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, reads, err := lagging(t, t.Context(), time.Second, 500, "No cluster leader")
		if err != nil {
			t.Error(err)
		}
		if reads < 9 || reads > 40 {
			t.Errorf("%d reads, want one every 50 ms or so", reads)
		}
	})
}

func TestWaitReplicatedGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, reads, err := lagging(t, t.Context(), -1, 403, "token does not exist: ACL not found")
		var gaveUp *retry.GaveUpError
		if !errors.As(err, &gaveUp) {
			t.Errorf("got %v, want *GaveUpError", err)
		}
		if !UnknownToken(err) {
			t.Errorf("got %v, want the servers' answer to an unknown token", err)
		}
		if took != replicationLimit {
			t.Errorf("took %s, want %s", took, replicationLimit)
		}
		if reads < 20 {
			t.Errorf("%d reads, want at least 20", reads)
		}
	})
}

func TestWaitReplicatedStopsForASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		signal := &exit.SignalError{Signal: syscall.SIGTERM}
		time.AfterFunc(time.Second+time.Millisecond, func() { cancel(signal) })
		took, _, err := lagging(t, ctx, -1, 403, "token does not exist: ACL not found")
		if !errors.Is(err, signal) || took != time.Second+time.Millisecond {
			t.Errorf("took %s, %v", took, err)
		}
	})
}

func TestWaitReplicatedStopsAtARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, reads, err := lagging(t, t.Context(), -1, 401, "ACL support disabled")
		var permanent *retry.PermanentError
		if !errors.As(err, &permanent) {
			t.Errorf("got %v, want a permanent error", err)
		}
		testkit.Equal(t, "time", took, 0)
		testkit.Equal(t, "reads", reads, 1)
	})
}

// TestExplainReplacesTheRemedy: a tag of the task role does nothing for a token whose
// binding rules bind roles alone. A policy of a role that many tasks have is no remedy for
// a wrong tag.
func TestExplainReplacesTheRemedy(t *testing.T) {
	t.Parallel()
	refused := &RefusedError{Op: `register service "web-abc"`,
		Err: api.StatusError{Code: 403, Body: "Permission denied"}, Remedy: "tag the task role"}
	if got := (Token{}).Explain(refused); got != error(refused) {
		t.Errorf("without roles: %v", got)
	}
	const want = `register service "web-abc": Unexpected response code: 403 (Permission denied): role clients of the ` +
		`token grants too little yet; attach a policy to it, or to the role of the auth method's binding rule`
	got := Token{Roles: "clients"}.Explain(refused)
	if got.Error() != want || Classify(got) != retry.NotYet {
		t.Errorf("class %v, %v", Classify(got), got)
	}
	const both = `register service "web-abc": Unexpected response code: 403 (Permission denied): tag the task role; ` +
		`the token has a service identity for gw, and role clients`
	got = Token{Roles: "clients", Identities: "gw"}.Explain(refused)
	if got.Error() != both || Classify(got) != retry.NotYet {
		t.Errorf("with an identity: class %v, %v", Classify(got), got)
	}
	missing := WithClass(fmt.Errorf("register: %w: the node is missing", refused.Err), retry.NotYet)
	if got := (Token{Roles: "clients"}).Explain(missing); got != missing {
		t.Errorf("an error that waiting may change: %v", got)
	}
}
