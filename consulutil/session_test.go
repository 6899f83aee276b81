package consulutil

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// sessionServer answers like a Consul and remembers what it was asked.
type sessionServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	// faults are answered first, with status 500.
	faults int
}

func newSessionServer(t *testing.T, faults int) *sessionServer {
	s := &sessionServer{faults: faults}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.URL.Path+" "+r.Header.Get("X-Consul-Token"))
		if s.faults--; s.faults >= 0 {
			http.Error(w, "some fault", http.StatusInternalServerError)
			return
		}
		w.Write([]byte(`{"AccessorID":"accessor-1","SecretID":"secret-1"}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sessionServer) session(t *testing.T) (*Session, *bytes.Buffer) {
	var log bytes.Buffer
	return &Session{
		Servers: func() (*api.Client, error) { return newClient(t, Options{Address: s.URL}), nil },
		Bearer:  func(context.Context) (string, error) { return "bearer", nil },
		Limit:   testkit.Patience,
		Log:     hclog.New(&hclog.LoggerOptions{Output: &log}),
	}, &log
}

func TestSessionFromLoginToLogout(t *testing.T) {
	t.Parallel()
	server := newSessionServer(t, 1)
	s, log := server.session(t)
	token, err := s.Login(t.Context(), LoginParams{Method: "iam"})
	if err != nil || token != (Token{Accessor: "accessor-1", Secret: "secret-1"}) {
		t.Fatalf("token = %#v, %v", token, err)
	}
	if err := s.WaitReplicated(t.Context(), token.Secret); err != nil {
		t.Error(err)
	}
	server.faults = 1
	if err := s.Logout(t.Context(), token.Secret); err != nil {
		t.Error(err)
	}
	want := []string{"/v1/acl/login ", "/v1/acl/login ", "/v1/acl/token/self secret-1", "/v1/acl/logout secret-1", "/v1/acl/logout secret-1"}
	if !slices.Equal(server.asked, want) {
		t.Errorf("asked %q, want %q", server.asked, want)
	}
	if text := log.String(); !strings.Contains(text, "accessor_id=accessor-1") || strings.Contains(text, "secret-1") || strings.Contains(text, "bearer") {
		t.Errorf("log:\n%s", text)
	}
}

// TestSessionMakesEverythingAnew: the CA file appears, and signatures expire.
func TestSessionMakesEverythingAnew(t *testing.T) {
	t.Parallel()
	s, _ := newSessionServer(t, 1).session(t)
	servers, clients, bearers := s.Servers, 0, 0
	s.Servers = func() (*api.Client, error) {
		if clients++; clients == 1 {
			return nil, errors.New("read CA file: not there")
		}
		return servers()
	}
	s.Bearer = func(context.Context) (string, error) { bearers++; return "b", nil }
	if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil || clients != 3 || bearers != 2 {
		t.Errorf("%d clients, %d bearers, %v", clients, bearers, err)
	}
}

func TestSessionThatIsNotSigned(t *testing.T) {
	t.Parallel()
	server := newSessionServer(t, 0)
	for want, fault := range map[string]error{
		"*retry.GaveUpError":    errors.New("no credentials yet"),
		"*retry.PermanentError": &retry.PermanentError{Err: errors.New("no region")},
	} {
		s, _ := server.session(t)
		s.Limit = 50 * time.Millisecond
		s.Bearer = func(context.Context) (string, error) { return "", fault }
		_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
		var sign *SignError
		var gaveUp *retry.GaveUpError
		if !errors.As(err, &sign) || !errors.Is(err, fault) || errors.As(err, &gaveUp) != (want == "*retry.GaveUpError") {
			t.Errorf("%v, want a %s", err, want)
		}
	}
	if len(server.asked) != 0 {
		t.Errorf("asked %q", server.asked)
	}
}

// TestWeakness12TokenThatComesTooLateIsHandedOver: whoever called must be able
// to log it out.
func TestWeakness12TokenThatComesTooLateIsHandedOver(t *testing.T) {
	t.Parallel()
	s, _ := newSessionServer(t, 0).session(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/acl/login" {
			cancel()
		}
		w.Write([]byte(`{"AccessorID":"accessor-1","SecretID":"secret-1"}`))
	}))
	defer server.Close()
	s.Servers = func() (*api.Client, error) { return newClient(t, Options{Address: server.URL}), nil }
	if token, err := s.Login(ctx, LoginParams{Method: "iam"}); err != nil || token.Secret != "secret-1" {
		t.Errorf("token = %#v, %v", token, err)
	}
}

func TestSessionLogoutEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := newSessionServer(t, 0)
	s, _ := server.session(t)
	if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
		t.Fatal(err)
	}
	server.faults = 1000
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := s.Logout(ctx, "secret-1"); err == nil || time.Since(start) >= LogoutLimit {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

// TestSessionLoginBelievesNoServerThatIsStarting: found by chaos (seed 20001): a
// server that had just been started again knew no auth method, and the task ended.
func TestSessionLoginBelievesNoServerThatIsStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Session{
			Servers: func() (*api.Client, error) {
				return nil, api.StatusError{Code: 403, Body: `ACL not found: auth method "iam" not found`}
			},
			Limit: time.Hour, Log: hclog.NewNullLogger(),
		}
		begun := time.Now()
		_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
		if took := time.Since(begun); err == nil || took < startingLimit || took > startingLimit+5*time.Second {
			t.Errorf("%v after %s, want a refusal after %s and a pause at most", err, took, startingLimit)
		}
		s.Servers = func() (*api.Client, error) { return nil, api.StatusError{Code: 403, Body: "Permission denied"} }
		begun = time.Now()
		if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err == nil || time.Since(begun) != 0 {
			t.Errorf("%v after %s, want any other refusal at once", err, time.Since(begun))
		}
	})
}

// TestSessionLogoutUsesTheTimeThereIs: found by chaos (seed 4000): the servers were
// back 19 s after TERM, half a second after client-entrypoint had given up.
func TestSessionLogoutUsesTheTimeThereIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, want time.Duration }{
		"none given": {0, LogoutLimit},
		"more":       {19500 * time.Millisecond, 19500 * time.Millisecond},
		"less":       {2 * time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.given > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.given)
					defer cancel()
				}
				s := &Session{
					Servers: func() (*api.Client, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} },
					Log:     hclog.NewNullLogger(),
				}
				begun := time.Now()
				if err := s.Logout(ctx, "secret-1"); err == nil || time.Since(begun) != c.want {
					t.Errorf("%v after %s, want an error after %s", err, time.Since(begun), c.want)
				}
			})
		})
	}
}

// TestSessionLogoutWithoutALogin: of a token that an earlier run left.
func TestSessionLogoutWithoutALogin(t *testing.T) {
	t.Parallel()
	server := newSessionServer(t, 0)
	s, _ := server.session(t)
	if err := s.Logout(t.Context(), "old"); err != nil || !slices.Equal(server.asked, []string{"/v1/acl/logout old"}) {
		t.Errorf("asked %q, %v", server.asked, err)
	}
}
