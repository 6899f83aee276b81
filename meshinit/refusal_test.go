package meshinit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const plainDoc = `{"bootstrapDir":"DIR","service":{"name":"web","port":9090}}`

// TestBadInput: one clear message that names the object and the remedy, the
// exit code, and nothing left behind.
func TestBadInput(t *testing.T) {
	t.Parallel()
	metadata := func(status int, body string) func(*fixture) {
		return func(s *fixture) { s.deps.Metadata = awsutil.NewMetadataClient(s.metadata(status, body).URL) }
	}
	tests := []struct {
		name, doc string
		login     bool
		spoil     func(s *fixture)
		exit      int
		want      []string
	}{
		{"metadata 500", plainDoc, false, metadata(500, "{}"), 3,
			[]string{"read task metadata", "status 500", "check the ECS agent"}},
		{"metadata garbage", plainDoc, false, metadata(200, "<html>"), 3,
			[]string{"read task metadata", "JSON object"}},
		{"metadata empty", plainDoc, false, metadata(200, ""), 3, []string{"read task metadata", "JSON object"}},
		{"metadata without a task", plainDoc, false, metadata(200, "{}"), 3, []string{"TaskARN"}},
		{"metadata unreachable", plainDoc, false,
			func(s *fixture) { s.deps.Metadata = awsutil.NewMetadataClient("http://127.0.0.1:1") }, 3,
			[]string{"http://127.0.0.1:1/task", "connection refused"}},
		{"family is no name", `{"bootstrapDir":"DIR"}`, false,
			metadata(200,
				`{"Name":"a","Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:1:task/c/t","Family":"_",`+
					`"Containers":[{"Name":"a"}]}`), 1, []string{`"_"`, "service.name"}},
		{"bridge network", plainDoc, false,
			metadata(200,
				`{"Name":"a","Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:1:task/c/t","Family":"web",`+
					`"Containers":[{"Name":"a","Networks":[{"NetworkMode":"bridge","IPv4Addresses":["172.17.0.3"]}]}]}`), 1, []string{`network mode "bridge"`, "set networkMode to awsvpc", "ECS Anywhere"}},
		{"gateway in the bridge network", `{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway"}}`, false,
			metadata(200,
				`{"Name":"a","Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:1:task/c/t","Family":"web",`+
					`"Containers":[{"Name":"a","Networks":[{"NetworkMode":"bridge","IPv4Addresses":["172.17.0.3"]}]}]}`), 1, []string{`network mode "bridge"`}},
		{"no network", `{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway"}}`, false,
			metadata(200,
				`{"Name":"a","Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:1:task/c/t","Family":"web",`+
					`"Containers":[{"Name":"a"}]}`), 3,
			[]string{"read task metadata: gave up", "no container has an IP address", "check the ECS agent"}},
		{"container missing", plainDoc, false,
			metadata(200,
				`{"Name":"a","Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:1:task/c/t","Family":"web",`+
					`"Containers":[{"Name":"b"}]}`), 3,
			[]string{"read task metadata: gave up", `does not list this container, "a"`}},
		{"agent unreachable", plainDoc, false, unreachableAgent, 3,
			[]string{"register service", "127.0.0.1:1", "consul-client"}},
		{"agent unreachable after a login", loginDoc, true, unreachableAgent, 3,
			[]string{"register service", "127.0.0.1:1", "consul-client"}},
		{"servers unreachable", strings.Replace(loginDoc, "ADDR", "127.0.0.1:1", 1), true, nil, 3,
			[]string{"log in", "127.0.0.1:1", "consulHTTPAddr"}},
		{"auth method that never appears", strings.Replace(loginDoc, trusting, "nope", 1), true, nil, 3,
			[]string{`auth method "nope"`, "acl-controller"}},
		{"untrusted role", strings.Replace(loginDoc, trusting, strict, 1), true, nil, 2,
			[]string{"arn:aws:iam::123456789012:role/consul-ecs/task-role", "BoundIAMPrincipalARNs"}},
		{"token for another service", strings.Replace(loginDoc, `"web"`, `"other"`, 1), true, nil, 2,
			[]string{`register service "other-`, "consul.hashicorp.com.service-name=other"}},
		{"token that Consul does not know", plainDoc, true, unknownToken, 3,
			[]string{`register service "web-`, "ACL not found", "correct CONSUL_HTTP_TOKEN"}},
		{"check that the agent refuses",
			`{"bootstrapDir":"DIR","service":{"name":"web","port":1,"checks":[{"name":"nothing to do"}]}}`,
			false, nil, 2, []string{`register service "web-`, "Invalid check"}},
		{"bootstrap setting of no sense",
			strings.Replace(loginDoc, `"proxy":{}`, `"proxy":{"config":{"envoy_prometheus_bind_addr":"nonsense"}}`, 1),
			true, nil, 1, []string{"envoy_prometheus_bind_addr", "sidecar-proxy"}},
		{"CA of the gRPC address is missing", loginDoc, true, func(s *fixture) {
			s.options.Proxy = meshinit.AgentProxy{GRPC: meshinit.GRPC{Address: "https://127.0.0.1:8503",
				CAFile: "/nonexistent"}}
		}, 1, []string{"CA of the gRPC address", "/nonexistent"}},
		{"volume that fills up", loginDoc, true, copyFails(syscall.ENOSPC), 1, []string{"no space left on device"}},
		{"program cannot be copied", loginDoc, true, copyFails(errors.New("copy: input/output error")), 3,
			[]string{"copy: input/output error"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := open
			if tt.login {
				server = secured
			}
			tries := []time.Duration{testkit.Patience} // a refusal ends at once
			if tt.exit == exit.CodeUnknown {
				tries = limits()
			}
			var problems []string
			for _, limit := range tries {
				s := newFixture(t, server, tt.doc)
				s.options.Limit = limit
				if tt.spoil != nil {
					tt.spoil(s)
				}
				err := s.run()
				s.wantNothing()
				if problems = differs(err, tt.exit, tt.want); len(problems) == 0 {
					return
				}
			}
			t.Error(strings.Join(problems, "\n"))
		})
	}
}

func unreachableAgent(s *fixture) { s.deps.Consul = s.consulAt("127.0.0.1:1", "") }

func unknownToken(s *fixture) {
	s.deps.Consul = s.consulAt(secured.HTTPAddr, "11111111-1111-1111-1111-111111111111")
}

func (s *fixture) consulAt(address, token string) func() (meshinit.Consul, error) {
	return func() (meshinit.Consul, error) {
		client, err := consulutil.NewClient(consulutil.Options{Address: address, Token: token})
		if err != nil {
			return meshinit.Consul{}, err
		}
		return meshinit.Consul{Registrar: registrar.New(s.options.Config, client)}, nil
	}
}

// TestWrongCA: a certificate that does not verify is no case for patience.
func TestWrongCA(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	s := newFixture(t, secured, strings.Replace(loginDoc, "ADDR", server.URL, 1))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(testkit.OtherCA), 0o600); err != nil {
		t.Fatal(err)
	}
	s.options.Config.ConsulCACertFile = ca
	err := s.run()
	testkit.Equal(t, "exit code", cli.ExitCode(err), 2)
	testkit.ErrorContains(t, err, server.URL)
	testkit.ErrorContains(t, err, "consulCACertFile")
	s.wantNothing()
}

// TestMissingDirectoryCostsNoToken: 0.6 made one token per 2 s.
func TestMissingDirectoryCostsNoToken(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.options.Config.BootstrapDir = filepath.Join(s.dir, "missing")
	err := s.run()
	testkit.Equal(t, "exit code", cli.ExitCode(err), 1)
	testkit.ErrorContains(t, err, "bootstrapDir")
	testkit.ErrorContains(t, err, s.options.Config.BootstrapDir)
	if got := s.requests.list(); len(got) != 0 {
		t.Errorf("requests = %v, want none", got)
	}
	s.wantNothing()
}

// Version 0.6 repeated them without an end.
func TestRefusalsEndAtOnce(t *testing.T) {
	t.Parallel()
	for doc, request := range map[string]string{
		strings.Replace(loginDoc, trusting, strict, 1): "POST /v1/acl/login",
		strings.Replace(loginDoc, `"web"`, `"other"`,
			1): "PUT /v1/agent/service/register",
		strings.Replace(loginDoc, `"port":9090`, `"port":9090,"checks":[{"name":"no kind"}]`,
			1): "PUT /v1/agent/service/register",
	} {
		s := newFixture(t, secured, doc)
		if err := s.run(); cli.ExitCode(err) != 2 {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
		if got := s.requests.count(request); got != 1 {
			t.Errorf("%d times %s, want once: %s", got, request, doc)
		}
	}
}

// TestFailureAfterLoginLogsOut: at every later request.
func TestFailureAfterLoginLogsOut(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"GET /v1/acl/token/self", "PUT /v1/agent/service/register",
		"GET /v1/agent/service/"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, loginDoc)
			s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.Method+" "+r.URL.Path, request) {
					http.Error(w, "no way", http.StatusBadRequest)
					return true
				}
				return false
			}
			if err := s.run(); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "no way") {
				t.Errorf("error = %v", err)
			}
			if got := s.requests.count("POST /v1/acl/logout"); got != 1 {
				t.Errorf("%d logouts, want 1", got)
			}
			s.wantNothing()
		})
	}
}

// TestSignalAfterLoginLogsOut: TERM while any request is under way,
// the login included.
func TestSignalAfterLoginLogsOut(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"POST /v1/acl/login", "GET /v1/acl/token/self",
		"PUT /v1/agent/service/register", "GET /v1/agent/service/"} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			term := &exit.SignalError{Signal: syscall.SIGTERM}
			s := newFixture(t, secured, loginDoc)
			s.requests.after = func(r *http.Request) {
				if strings.HasPrefix(r.Method+" "+r.URL.Path, request) {
					cancel(term)
				}
			}
			err := meshinit.Run(ctx, s.options, s.deps)
			if !errors.Is(err, term) || cli.ExitCode(err) != 3 {
				t.Errorf("exit %d: %v, want the signal as cause", cli.ExitCode(err), err)
			}
			if !strings.Contains(s.log.String(), "logged in") {
				t.Error("there was no login to undo")
			}
			s.wantNothing()
		})
	}
}

func TestSignalWhileCopying(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := newFixture(t, secured, loginDoc)
	copyProgram := s.deps.CopyProgram
	s.deps.CopyProgram = func(path string) error {
		cancel(&exit.SignalError{Signal: syscall.SIGINT})
		return copyProgram(path)
	}
	if err := meshinit.Run(ctx, s.options, s.deps); err == nil {
		t.Error("no error")
	}
	s.wantNothing()
}

// TestFailedLogoutIsLoggedWithItsAccessor: then the controller is the last resort.
func TestFailedLogoutIsLoggedWithItsAccessor(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, strings.Replace(loginDoc, `"web"`, `"other"`, 1))
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/acl/logout" {
			http.Error(w, "Permission denied", http.StatusForbidden)
			return true
		}
		return false
	}
	if err := s.run(); cli.ExitCode(err) != 2 || strings.Contains(err.Error(), "log out") {
		t.Errorf("error = %v, want the first one", err)
	}
	tokens := s.tokens()
	if len(tokens) != 1 {
		t.Fatalf("tokens %v, want one", tokens)
	}
	for _, text := range []string{"accessor_id=" + tokens[0], "controller"} {
		if !strings.Contains(s.log.String(), text) {
			t.Errorf("no %q in the log:\n%s", text, s.log)
		}
	}
}

// TestPassingFaults: what is retried, and that it then works.
func TestPassingFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, request string
		times         int
		status        int
		body          string
	}{
		{"login 500", "POST /v1/acl/login", 2, 500, "No cluster leader"},
		{"login 429", "POST /v1/acl/login", 1, 429, "rate limit"},
		{"AWS not consistent yet", "POST /v1/acl/login", 1, 500, "response body is invalid"},
		{"replication lag", "GET /v1/acl/token/self", 5, 403, "token does not exist: ACL not found"},
		{"agent does not know the token yet", "PUT /v1/agent/service/register", 2, 403, "ACL not found"},
		{"agent without servers", "PUT /v1/agent/service/register", 2, 500, "No known Consul servers"},
		{"agent that has not joined yet", "PUT /v1/agent/service/register", 2, 403,
			`Permission denied: token with AccessorID 'primary-dc-down' lacks permission 'service:write' on "web"`},
		{"proxy read 500", "GET /v1/agent/service/", 1, 500, "what"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, loginDoc)
			var left atomic.Int32
			left.Store(int32(tt.times))
			s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.Method+" "+r.URL.Path, tt.request) || left.Add(-1) < 0 {
					return false
				}
				http.Error(w, tt.body, tt.status)
				return true
			}
			s.mustRun()
			if tokens := s.tokens(); len(tokens) != 1 {
				t.Errorf("tokens = %v, want one", tokens)
			}
		})
	}
}

// TestMetadataIsRetried: 0.6 gave up at the first failure.
func TestMetadataIsRetried(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, plainDoc)
	var reads atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, s.task())
	}))
	defer server.Close()
	metadata := &goodReads{Metadata: awsutil.NewMetadataClient(server.URL)}
	s.deps.Metadata = metadata
	s.mustRun()
	if reads.Load() < 3 || metadata.n != 1 {
		t.Errorf("%d reads, %d of them good, want 3 and 1", reads.Load(), metadata.n)
	}
}

// goodReads counts the reads that succeed.
type goodReads struct {
	meshinit.Metadata
	n int
}

func (g *goodReads) Task(ctx context.Context) (workload.Task, error) {
	task, err := g.Metadata.Task(ctx)
	if err == nil {
		g.n++
	}
	return task, err
}

// TestCAFileMayAppearLater: consul-client writes it, so the client is built
// anew for each attempt, and so is the bearer, whose signature expires.
func TestCAFileMayAppearLater(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	s.options.Config.ConsulCACertFile = ca
	servers, bearer := s.servers, s.bearer
	var builds, bearers int
	s.servers = func() (*api.Client, error) {
		if builds++; builds == 3 {
			if err := os.WriteFile(ca, []byte(testkit.OtherCA), 0o600); err != nil {
				t.Error(err)
			}
		}
		return servers()
	}
	s.bearer = func(ctx context.Context, task workload.Task) (string, error) {
		bearers++
		return bearer(ctx, task)
	}
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/acl/login" && bearers == 1 {
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
			return true
		}
		return false
	}
	s.mustRun()
	if builds != 3 || bearers != 2 {
		t.Errorf("%d clients and %d bearers, want 3 and 2", builds, bearers)
	}
}

// TestOneLinePerAttempt: 0.6 logged Consul's errors twice.
func TestOneLinePerAttempt(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	var left atomic.Int32
	left.Store(2)
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/acl/login" || left.Add(-1) < 0 {
			return false
		}
		http.Error(w, "some fault", http.StatusInternalServerError)
		return true
	}
	s.mustRun()
	if got := strings.Count(s.log.String(), "some fault"); got != 2 {
		t.Errorf("%d lines for 2 failed attempts:\n%s", got, s.log)
	}
}
