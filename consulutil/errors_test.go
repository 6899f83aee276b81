package consulutil

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const strangeToken = "11111111-1111-1111-1111-111111111111"

// dial is the error of a connection that was not made.
var dial = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

func TestClassify(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) error {
		return fmt.Errorf("register: %w", api.StatusError{Code: code, Body: body})
	}
	tests := []struct {
		name string
		err  error
		want retry.Class
		// fresh is the class right after a login.
		fresh retry.Class
	}{
		{"no connection", dial, retry.NotYet, retry.NotYet},
		{"connection cut", io.ErrUnexpectedEOF, retry.NotYet, retry.NotYet},
		{"timeout", context.DeadlineExceeded, retry.NotYet, retry.NotYet},
		{"file that may appear", &os.PathError{Op: "open", Err: os.ErrNotExist}, retry.NotYet, retry.NotYet},
		{"something else", errors.New("what"), retry.NotYet, retry.NotYet},
		{"plain HTTP answer on https", fmt.Errorf("get: %w", http.ErrSchemeMismatch), retry.Permanent, retry.Permanent},
		{"marked permanent", fmt.Errorf("x: %w", &retry.PermanentError{Err: io.EOF}), retry.Permanent, retry.Permanent},
		{"400", status(400, "Invalid check: TTL must be > 0 for TTL checks"), retry.Permanent, retry.Permanent},
		{"401", status(401, "ACL support disabled"), retry.Permanent, retry.Permanent},
		{"403", status(403, `Permission denied: token lacks permission 'service:write' on "web"`), retry.Permanent,
			retry.Permanent},
		{"403 unknown token", status(403, "ACL not found"), retry.Permanent, retry.NotYet},
		{
			"403 unknown token through a client agent",
			status(403, "rpc error making call: ACL not found"), retry.Permanent, retry.NotYet,
		},
		{
			"403 unknown token of token self",
			status(403, "token does not exist: ACL not found"), retry.Permanent, retry.NotYet,
		},
		{
			"403 of an agent that has not joined yet",
			status(403,
				`Permission denied: token with AccessorID 'primary-dc-down' lacks permission 'service:write' on "web"`),
			retry.NotYet, retry.NotYet,
		},
		{"403 before the ACL bootstrap",
			status(403,
				"ACL system must be bootstrapped before making any requests that require authorization: ACL not found"),
			retry.NotYet, retry.NotYet},
		{"404", status(404, `Unknown check ID "web"`), retry.Gone, retry.Gone},
		{"405", status(405, "method GET not allowed"), retry.Permanent, retry.Permanent},
		{"429", status(429, "rate limit exceeded"), retry.NotYet, retry.NotYet},
		{"500", status(500, "No cluster leader"), retry.NotYet, retry.NotYet},
		{"500 of an agent that has not joined yet", status(500, "No known Consul servers"), retry.NotYet, retry.NotYet},
		{"503", status(503, "rate limit exceeded for operation, try again later"), retry.NotYet, retry.NotYet},
		{"500 script check", status(500, "Scripts are disabled on this agent from remote calls"), retry.Permanent,
			retry.Permanent},
		{"500 invalid proxy",
			status(500, "rpc error making call: 1 error occurred:\n\t* upstream destination name cannot be a wildcard"),
			retry.Permanent, retry.Permanent},
		{"500 invalid service meta",
			status(500,
				"failed inserting service: Invalid Service Meta for node n and serviceID web: Couldn't load metadata "+
					"pair ('a b', 'c'): Key contains invalid characters"), retry.Permanent, retry.Permanent},
		{"500 invalid service address", status(500, "rpc error making call: Invalid service address"), retry.Permanent,
			retry.Permanent},
		{"500 short session", status(500, "Invalid Session TTL '10000000000', must be between [30s=24h0m0s]"),
			retry.Permanent, retry.Permanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Classify(tt.err); got != tt.want {
				t.Errorf("Classify = %v, want %v", got, tt.want)
			}
			if got := ClassifyNewToken(tt.err); got != tt.fresh {
				t.Errorf("ClassifyNewToken = %v, want %v", got, tt.fresh)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"dial", fmt.Errorf("log in: %w", &url.Error{Err: dial}), true},
		{"connection cut", &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}, false},
		{"timeout", context.DeadlineExceeded, false},
		{"answer", api.StatusError{Code: 500}, false},
	} {
		if got := Unreachable(tt.err); got != tt.want {
			t.Errorf("%s: Unreachable = %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestClassifyRealAnswers keeps the table above honest: what the real server
// answers, and what we make of it.
func TestClassifyRealAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		server *testkit.Consul
		token  string
		do     func(*api.Client) error
		status int
		reason string
		want   retry.Class
	}{
		{"register with an unknown token", secured, strangeToken, register(&api.AgentServiceRegistration{Name: "web"}),
			403, "ACL not found", retry.Permanent},
		{"register without a token", secured, "", register(&api.AgentServiceRegistration{Name: "web"}), 403,
			"Permission denied", retry.Permanent},
		{"register a check of no kind", open, "",
			register(&api.AgentServiceRegistration{Name: "web", Check: &api.AgentServiceCheck{Name: "x"}}), 400,
			"Invalid check", retry.Permanent},
		{"register a bad duration", open, "",
			register(
				&api.AgentServiceRegistration{Name: "web", Check: &api.AgentServiceCheck{TCP: "x", Interval: "soon"}}),
			400, "invalid duration", retry.Permanent},
		{"register a script check", open, "",
			register(
				&api.AgentServiceRegistration{Name: "web",
					Check: &api.AgentServiceCheck{Args: []string{"true"}, Interval: "10s"}}), 500,
			"Scripts are disabled", retry.Permanent},
		{"register a namespace on CE", open, "", register(&api.AgentServiceRegistration{Name: "web", Namespace: "x"}),
			400, "unknown field", retry.Permanent},
		{"read an unknown service", open, "",
			func(c *api.Client) error { _, _, err := c.Agent().Service("nope", nil); return err }, 404,
			"unknown service ID", retry.Gone},
		{"update an unknown check", open, "",
			func(c *api.Client) error { return c.Agent().UpdateTTL("nope", "", "passing") }, 404, "Unknown check ID",
			retry.Gone},
		{"register a check of an unknown service", open, "", func(c *api.Client) error {
			return c.Agent().CheckRegister(
				&api.AgentCheckRegistration{Name: "x", ServiceID: "nope",
					AgentServiceCheck: api.AgentServiceCheck{TTL: "1s"}})
		}, 404, "does not exist", retry.Gone},
		{"log in with an unknown method", secured, "", login("nope"), 403, "auth method", retry.NotYet},
		{"log in without ACLs", open, "", login("nope"), 401, "ACL support disabled", retry.Permanent},
		{"log out with an unknown token", secured, strangeToken,
			func(c *api.Client) error { _, err := c.ACL().Logout(nil); return err }, 403, "ACL not found",
			retry.Permanent},
		{"log out a token that no login made", secured, testkit.ManagementToken,
			func(c *api.Client) error { _, err := c.ACL().Logout(nil); return err }, 403,
			"token wasn't created via login", retry.Permanent},
		{"read an unknown token", secured, strangeToken,
			func(c *api.Client) error { _, _, err := c.ACL().TokenReadSelf(nil); return err }, 403, "ACL not found",
			retry.Permanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.do(client(t, tt.server, tt.token))
			if Status(err) != tt.status || !strings.Contains(Reason(err), tt.reason) {
				t.Fatalf("answer = %d %q, want %d with %q", Status(err), Reason(err), tt.status, tt.reason)
			}
			if got := Classify(err); got != tt.want {
				t.Errorf("Classify = %v, want %v", got, tt.want)
			}
		})
	}
}

func register(r *api.AgentServiceRegistration) func(*api.Client) error {
	return func(c *api.Client) error { return c.Agent().ServiceRegister(r) }
}

func login(method string) func(*api.Client) error {
	return func(c *api.Client) error {
		_, err := Login(context.Background(), c, LoginParams{Method: method, Bearer: "x"})
		return err
	}
}

func TestWrongCAIsPermanentAndNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(testkit.OtherCA), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := newClient(t, Options{Address: server.URL, CAFile: ca}).ACL().TokenReadSelf(nil)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) || Classify(err) != retry.Permanent {
		t.Errorf("error = %v (class %v), want a permanent UnknownAuthorityError", err, Classify(err))
	}
}

func TestWrongSchemeIsPermanent(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	tests := map[string]string{
		"https to http": strings.Replace(plain.URL, "http://", "https://", 1),
		"http to https": strings.Replace(secure.URL, "https://", "http://", 1),
	}
	for name, address := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := newClient(t, Options{Address: address}).ACL().TokenReadSelf(nil)
			if err == nil || Classify(err) != retry.Permanent {
				t.Errorf("error = %v, class %v, want permanent", err, Classify(err))
			}
		})
	}
}

// A refusal has its own remedy, a signal needs none.
func TestRemedyIsAddedWhenRetriesEnd(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for _, tt := range []struct {
		err    error
		remedy string
		want   string
	}{
		{&retry.GaveUpError{Attempts: 1, Err: fault}, "look there",
			"log in: gave up after 1 attempt in 0s: fault (look there)"},
		{&retry.GaveUpError{Attempts: 1, Err: fault}, "", "gave up after 1 attempt in 0s: fault"},
		{&retry.GaveUpError{Attempts: 2, Err: &exit.SignalError{Signal: syscall.SIGTERM}}, "look there",
			"gave up after 2 attempts in 0s: stopped by signal terminated"},
		{&retry.PermanentError{Err: fault}, "look there", "fault"},
	} {
		got := Remedy(tt.err, "log in", tt.remedy)
		if got.Error() != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%v, want %s", got, tt.want)
		}
	}
	if got := Remedy(nil, "log in", "look there"); got != nil {
		t.Errorf("nil became %v", got)
	}
}
