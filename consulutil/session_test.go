package consulutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const leaderPath = "/v1/status/leader"

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
		w.Header().Set(defaultPolicyHeader, "deny")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.URL.Path+" "+r.Header.Get("X-Consul-Token"))
		if r.URL.Path == leaderPath {
			w.Write([]byte(`"10.0.0.1:8300"`))
			return
		}
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
	server.faults = 1
	if err := s.Logout(t.Context(), token.Secret); err != nil {
		t.Error(err)
	}
	want := []string{
		leaderPath + " ", "/v1/acl/login ", leaderPath + " ", "/v1/acl/login ",
		"/v1/acl/token/self secret-1", "/v1/acl/logout secret-1", "/v1/acl/logout secret-1",
	}
	if !slices.Equal(server.asked, want) {
		t.Errorf("asked %q, want %q", server.asked, want)
	}
	text := log.String()
	if !strings.Contains(text, "accessor_id=accessor-1") {
		t.Errorf("the log does not name the token:\n%s", text)
	}
	if strings.Contains(text, "secret-1") || strings.Contains(text, "bearer") {
		t.Errorf("the log has a secret:\n%s", text)
	}
}

// TestSessionMakesEverythingAnew: the CA file appears, and signatures expire.
func TestSessionMakesOneClientAndSignsEachAttempt(t *testing.T) {
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
	if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
		t.Error(err)
	}
	testkit.Equal(t, "clients", clients, 2)
	testkit.Equal(t, "bearers", bearers, 2)
}

func TestSessionWithoutSignature(t *testing.T) {
	t.Parallel()
	for want, fault := range map[string]error{
		"*retry.GaveUpError":    errors.New("no credentials yet"),
		"*retry.PermanentError": &retry.PermanentError{Err: errors.New("no region")},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := testkit.NewFleet()
			s := fleetSession(newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap}))
			s.Bearer = func(context.Context) (string, error) { return "", fault }
			_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
			if _, unsigned := errors.AsType[*SignError](err); !unsigned {
				t.Errorf("%v, want a *SignError", err)
			}
			if !errors.Is(err, fault) {
				t.Errorf("%v, want %v", err, fault)
			}
			if _, gaveUp := errors.AsType[*retry.GaveUpError](err); gaveUp != (want == "*retry.GaveUpError") {
				t.Errorf("%v, want a %s", err, want)
			}
			if n := f.Count("acl/login").Received; n > 0 {
				t.Errorf("%d logins", n)
			}
		})
	}
}

// TestFailedLoginReturnsTheTokenToLogOut: that of the login when the wait for it fails, else
// that of the earlier run, also one that Consul does not know. The limit is that of the login
// alone: a token that was obtained in time is not thrown away.
func TestFailedLoginReturnsTheTokenToLogOut(t *testing.T) {
	t.Parallel()
	const login, self = "/v1/acl/login", "/v1/acl/token/self"
	unknown, busy := api.StatusError{Code: 403, Body: "ACL not found"},
		api.StatusError{Code: 500, Body: "No cluster leader"}
	for name, c := range map[string]struct {
		answers map[string]error // by path
		limit   time.Duration
		token   Token
		took    time.Duration
		want    string
	}{
		"no login": {
			map[string]error{self: unknown, login: busy}, 3 * time.Second,
			Token{Secret: "old"}, 3 * time.Second, "gave up after ",
		},
		"no replication": {
			map[string]error{self: unknown}, time.Minute,
			Token{Accessor: "a", Secret: "s"}, replicationLimit, "wait for token replication: gave up",
		},
		"no limit for it": {
			map[string]error{self: unknown}, 3 * time.Second,
			Token{Accessor: "a", Secret: "s"}, replicationLimit, "wait for token replication: gave up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, _ := refusing(t, func(path string) error { return c.answers[path] })
				s.Limit = c.limit
				start := time.Now()
				token, err := s.Login(t.Context(), LoginParams{Method: "iam", Previous: "old"})
				testkit.Equal(t, "token", token, c.token)
				if !strings.HasPrefix(fmt.Sprint(err), c.want) {
					t.Errorf("got %v, want it to begin with %q", err, c.want)
				}
				testkit.Equal(t, "time", time.Since(start), c.took)
			})
		})
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

// In the first deployment the controller creates the auth method after the first
// login was tried; a server that has just started knows none for some seconds.
func TestSessionRetriesUntilTheACLObjectsExist(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]api.StatusError{
		"auth method":  {Code: 403, Body: `ACL not found: auth method "iam" not found`},
		"binding rule": {Code: 403, Body: "Permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				created := time.Now().Add(70 * time.Second)
				s, log := refusing(t, func(string) error {
					if time.Now().Before(created) {
						return answer
					}
					return nil
				})
				if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
					t.Fatal(err)
				}
				if late := time.Since(created); late > 9*time.Second {
					t.Errorf("logged in %s after the object was created, want at most an eighth of the 70 s", late)
				}
				text := log.String()
				if n := strings.Count(text, "[WARN]"); n < 4 || n > 8 { // at 0 s, and at most every 10 s
					t.Errorf("%d warnings in 70 s:\n%s", n, text)
				}
				for _, want := range []string{`auth method \"iam\"`, name, "acl-controller"} {
					if !strings.Contains(text, want) {
						t.Errorf("the warning does not name %s:\n%s", want, text)
					}
				}
			})
		})
	}
}

// A server holds a login until there is a leader, and for some time after that.
func TestSessionAsksAStartingServerForItsLeaderFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up, elected := time.Now().Add(5*time.Second), time.Now().Add(8*time.Second)
		p := newPipes()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/v1/status/leader" && time.Now().Before(elected):
				w.Write([]byte(`""`))
			case r.URL.Path == "/v1/status/leader":
				w.Write([]byte(`"10.0.0.1:8300"`))
			case time.Now().Before(elected):
				t.Error("a login before there is a leader")
			default:
				w.Write([]byte(`{"AccessorID":"a","SecretID":"s"}`))
			}
		})}
		go server.Serve(p)
		defer server.Close()
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Now().Before(up) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return p.Dial(ctx, network, address)
		}
		s, log := refusing(t, nil)
		s.Servers = func() (*api.Client, error) {
			return newClient(t, Options{Address: "consul:8500", DialContext: dial}), nil
		}
		if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(elected); late > time.Second {
			t.Errorf("logged in %s after the election, want at most 1 s", late)
		}
		if !strings.Contains(log.String(), "no cluster leader") {
			t.Errorf("the log does not name the cause:\n%s", log)
		}
	})
}

func TestSessionGivesUpOnACLObjectsThatNeverAppear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refusing(t, func(string) error {
			return api.StatusError{Code: 403, Body: `ACL not found: auth method "iam" not found`}
		})
		_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
		if cli.ExitCode(err) != exit.CodeUnknown || !strings.Contains(err.Error(), "consulLogin.method") {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
	})
}

func TestSessionNamesTheObjectsToCheckWhenItGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Session{
			Servers: func() (*api.Client, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} },
			Limit:   time.Minute, Log: hclog.NewNullLogger(),
		}
		_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
		if want := "log in: gave up after "; !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("got %v, want it to begin with %q", err, want)
		}
		for _, want := range []string{"consulHTTPAddr", "-consul-http-addr"} {
			testkit.ErrorContains(t, err, want)
		}
		s, _ = refusing(t, func(string) error { return nil })
		s.Bearer = func(context.Context) (string, error) { return "", errors.New("no credentials yet") }
		if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); !strings.Contains(err.Error(), "taskRoleArn") ||
			strings.Contains(err.Error(), "consulHTTPAddr") {
			t.Errorf("no signature: %v", err)
		}
		s, _ = refusing(t, func(string) error { return api.StatusError{Code: 500, Body: "No cluster leader"} })
		client, _ := s.Servers()
		if err := WaitReplicated(t.Context(), client, "secret-1", s.Log); !strings.HasPrefix(err.Error(),
			"wait for token replication: gave up after ") ||
			!strings.Contains(err.Error(), "health of the Consul servers") {
			t.Errorf("no leader: %v", err)
		}
	})
}

func TestSessionStopsAtARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refusing(t, func(string) error {
			return api.StatusError{Code: 500, Body: "IAM principal arn:aws:iam::1:role/x is not trusted"}
		})
		begin := time.Now()
		_, err := s.Login(t.Context(), LoginParams{Method: "iam"})
		if cli.ExitCode(err) != exit.CodeRefused || time.Since(begin) != 0 {
			t.Errorf("exit %d after %s: %v", cli.ExitCode(err), time.Since(begin), err)
		}
	})
}

// refusing returns a session, in a bubble, with a server that answers with the error of
// a login, or with a token when there is none.
func refusing(t *testing.T, refusal func(path string) error) (*Session, *bytes.Buffer) {
	t.Helper()
	p := newPipes()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == leaderPath {
			w.Write([]byte(`"10.0.0.1:8300"`))
			return
		}
		if status, ok := errors.AsType[api.StatusError](refusal(r.URL.Path)); ok {
			http.Error(w, status.Body, status.Code)
			return
		}
		w.Write([]byte(`{"AccessorID":"a","SecretID":"s"}`))
	})}
	go server.Serve(p)
	t.Cleanup(func() { server.Close() })
	var log bytes.Buffer
	return &Session{
		Servers: func() (*api.Client, error) {
			return newClient(t, Options{Address: "consul:8500", DialContext: p.Dial}), nil
		},
		Bearer: func(context.Context) (string, error) { return "bearer", nil },
		Limit:  retry.StartLimit,
		Log:    hclog.New(&hclog.LoggerOptions{Output: &log}),
	}, &log
}

// TestSessionLogoutUsesTheTimeThereIs: regression: the servers were
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
					Servers: func() (*api.Client, error) {
						return nil,
							&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
					},
					Log: hclog.NewNullLogger(),
				}
				started := time.Now()
				if err := s.Logout(ctx, "secret-1"); err == nil || time.Since(started) != c.want {
					t.Errorf("%v after %s, want an error after %s", err, time.Since(started), c.want)
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
