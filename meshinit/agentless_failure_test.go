package meshinit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// agentlessRequests returns the requests of a start with a login, in their order.
func agentlessRequests() []string {
	return []string{
		"POST /v1/acl/login", "GET /v1/acl/token/self", "PUT /v1/txn", "PUT /v1/catalog/register",
		"GET /v1/health/service/",
	}
}

// matches reports whether it is the request, whose path may go on.
func matches(r *http.Request, request string) bool {
	return strings.HasPrefix(r.Method+" "+r.URL.Path, request)
}

// Version 0.10 left registrations and tokens, and repeated what was refused for ever.
func TestAgentlessRefusalUndoesRegistrationAndLogin(t *testing.T) {
	t.Parallel()
	for _, request := range agentlessRequests() {
		for _, doc := range []string{serversLoginDoc, direct(serversLoginDoc)} {
			s := newFixture(t, secured, doc)
			var refused atomic.Int32
			s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if !matches(r, request) {
					return false
				}
				refused.Add(1)
				status, text := http.StatusBadRequest, "no way"
				if request == "PUT /v1/txn" { // of which the library drops the status
					status, text = http.StatusForbidden, "no way: Permission denied"
				}
				http.Error(w, text, status)
				return true
			}
			if err := s.run(); cli.ExitCode(err) != exit.CodeRefused || !strings.Contains(err.Error(), "no way") {
				t.Errorf("%s: exit %d: %v", request, cli.ExitCode(err), err)
			}
			if refused.Load() != 1 {
				t.Errorf("%s: %d attempts, want 1", request, refused.Load())
			}
			s.wantNothing()
		}
	}
}

// Only the proxy's container uses the text, which would refuse a task that is registered.
func TestUnusableGRPCCACertificatesCostNoToken(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{serversLoginDoc, direct(serversLoginDoc)} {
		s := newFixture(t, secured, doc)
		s.options.Proxy = meshinit.ServersProxy{Config: s.options.Config,
			GRPC: consulutil.ServerTLS{Enabled: true, CAPEM: "no certificate"}}
		if err := s.run(); cli.ExitCode(err) != exit.CodeUsage ||
			!strings.Contains(err.Error(), "correct CONSUL_HTTPS_CACERT_PEM or CONSUL_GRPC_CACERT_PEM") {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
		if got := s.requests.list(); len(got) != 0 {
			t.Errorf("requests = %v, want none", got)
		}
		s.wantNothing()
	}
}

func TestAgentlessSignalUndoesRegistrationAndLogin(t *testing.T) {
	t.Parallel()
	for _, request := range agentlessRequests() {
		ctx, cancel := context.WithCancelCause(t.Context())
		term := &exit.SignalError{Signal: syscall.SIGTERM}
		s := newFixture(t, secured, serversLoginDoc)
		s.requests.after = func(r *http.Request) {
			if matches(r, request) {
				cancel(term)
			}
		}
		err := meshinit.Run(ctx, s.options, s.deps)
		if !errors.Is(err, term) || cli.ExitCode(err) != exit.CodeUnknown {
			t.Errorf("%s: exit %d: %v, want the signal as cause", request, cli.ExitCode(err), err)
		}
		if !strings.Contains(s.log.String(), "logged in") {
			t.Errorf("%s: there was no login to undo", request)
		}
		s.wantNothing()
	}
}

// What a step waits for never comes: TERM ends the wait.
func TestAgentlessSignalEndsEveryWait(t *testing.T) {
	t.Parallel()
	for _, request := range agentlessRequests() {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			s := newFixture(t, secured, serversLoginDoc)
			var answers atomic.Int32
			s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if !matches(r, request) {
					return false
				}
				http.Error(w, "No cluster leader", http.StatusInternalServerError)
				if answers.Add(1) == 2 {
					cancel(&exit.SignalError{Signal: syscall.SIGTERM})
				}
				return true
			}
			if err := meshinit.Run(ctx, s.options, s.deps); cli.ExitCode(err) != exit.CodeUnknown {
				t.Errorf("exit %d: %v", cli.ExitCode(err), err)
			}
			s.wantNothing()
		})
	}
}

func TestAgentlessRefusalsNameTheRemedy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		doc  string
		want []string
	}{
		"untrusted role": {strings.Replace(serversLoginDoc, trusting, strict, 1),
			[]string{"role/consul-ecs/task-role", "BoundIAMPrincipalARNs"}},
		"token for another service": {strings.Replace(serversLoginDoc, `"web"`, `"other"`, 1),
			[]string{`register service "other-`, "consul.hashicorp.com.service-name=other"}},
		"token for another gateway": {`{"bootstrapDir":"DIR","consulServers":SERVERS,"consulLogin":{"enabled":true,` +
			`"method":"` + trusting + `"},"gateway":{"kind":"api-gateway","name":"other"}}`,
			[]string{`register proxy "other-`, "Permission denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, tt.doc)
			if problems := differs(s.run(), exit.CodeRefused, tt.want); len(problems) > 0 {
				t.Error(strings.Join(problems, "\n"))
			}
			s.wantNothing()
		})
	}
}

func TestAgentlessWrongSchemeNamesTheSetting(t *testing.T) {
	t.Parallel()
	for scheme, doc := range map[string]string{"https": serversLoginDoc,
		"http": strings.Replace(serversLoginDoc, `"enabled":true,`, `"enabled":false,`, 1)} {
		s := newFixture(t, secured, doc)
		s.options.Config.ConsulServers.HTTP.HTTPS = true // the front has none
		s.leaveAgent()
		err := s.run()
		testkit.Equal(t, "exit code", cli.ExitCode(err), exit.CodeRefused)
		testkit.ErrorContains(t, err, "set consulServers.http.https to false")
		if strings.Contains(err.Error(), "consulHTTPAddr") {
			t.Errorf("%s: the error names consulHTTPAddr: %v", scheme, err)
		}
		s.wantNothing()
	}
}

func TestAgentlessWrongCANamesTheSetting(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, login := range []string{"true", "false"} {
		s := newFixture(t, secured, strings.Replace(serversLoginDoc, `"enabled":true`, `"enabled":`+login, 1))
		c := s.options.Config.ConsulServers
		c.HTTP.HTTPS, c.HTTP.Port = true, server.Listener.Addr().(*net.TCPAddr).Port
		c.HTTP.CACertFile = t.TempDir() + "/ca.pem"
		if err := os.WriteFile(c.HTTP.CACertFile, []byte(testkit.OtherCA), 0o600); err != nil {
			t.Fatal(err)
		}
		s.leaveAgent()
		err := s.run()
		if cli.ExitCode(err) != exit.CodeRefused || strings.Count(err.Error(), "consulServers.http.caCertFile") != 1 {
			t.Errorf("login %s: exit %d: %v", login, cli.ExitCode(err), err)
		}
	}
}

// In the first deployment the task may be there before the controller, which creates the
// node.
func TestMissingNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, serversLoginDoc)
	s.cluster = "late-" + s.taskID
	s.deps.Metadata = s.taskMetadata()
	ended := make(chan error, 1)
	go func() { ended <- s.run() }()
	testkit.Eventually(t, "the missing node is logged", func() bool {
		_, line, found := strings.Cut(s.log.String(), "[WARN]  register failed, retrying:")
		return found &&
			strings.Contains(line, "is not in the catalog; the controller (consul-ecs controller) creates it")
	})
	if err := createNode(s.admin(), s.cluster); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	s.instance("web", "web-"+s.taskID)
}

// The servers may start after the task.
func TestAgentlessServersMayBeLate(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, serversLoginDoc)
	port := testkit.ReservePort(t)
	s.options.Config.ConsulServers.HTTP.Port = port.Port
	s.leaveAgent()
	ended := make(chan error, 1)
	go func() { ended <- s.run() }()
	testkit.Eventually(t, "the login is tried",
		func() bool { return strings.Contains(s.log.String(), "connection refused") })
	go http.Serve(port.Listen(), s.requests.before("http://"+secured.HTTPAddr))
	start := time.Now()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	t.Logf("ready %s after the servers", time.Since(start).Round(time.Millisecond))
	s.instance("web", "web-"+s.taskID)
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want one", tokens)
	}
}

// The server that took the login dies: the others have the token, too.
func TestRegistrationGoesToAnotherServerAfterTheLogin(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured,
		strings.Replace(serversLoginDoc, "SERVERS",
			`{"hosts":"exec=echo 127.0.0.1 `+
				`127.0.0.2","skipServerWatch":true,"http":{"https":false},"grpc":{"tls":false}}`, 1))
	ports, err := testkit.FreePorts(1)
	s.must(err)
	var took atomic.Value // address that the login went to
	took.Store("")
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, ports[0]))
		s.must(err)
		var server *http.Server
		front := s.requests.before("http://" + secured.HTTPAddr)
		server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case matches(r, "POST /v1/acl/login"):
				took.Store(host)
			case took.Load() == host: // any later request
				server.Close()
				panic(http.ErrAbortHandler)
			}
			front.ServeHTTP(w, r)
		})}
		t.Cleanup(func() { server.Close() })
		go server.Serve(l)
	}
	s.options.Config.ConsulServers.HTTP.Port = ports[0]
	s.leaveAgent()
	s.mustRun()
	if log := s.log.String(); !strings.Contains(log, "moved to another Consul server") {
		t.Errorf("no other server in\n%s", log)
	}
	if got := s.requests.count("POST /v1/acl/login"); got != 1 {
		t.Errorf("%d logins, want 1", got)
	}
	s.instance("web", "web-"+s.taskID)
	s.instance("web-sidecar-proxy", "web-"+s.taskID+"-sidecar-proxy")
}

// A second run replaces the files, and keeps the token and the health that health-sync
// has written. Version 0.10 failed at its own files.
func TestAgentlessRerun(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{serversLoginDoc, direct(serversLoginDoc)} {
		s := newFixture(t, secured, doc)
		s.mustRun()
		before := map[string]string{}
		names := []string{workload.FileServiceToken, workload.FileDataplane}
		if doc != serversLoginDoc {
			names = []string{workload.FileServiceToken, workload.FileBootstrap, workload.FileRelay}
		}
		for _, name := range names {
			before[name] = string(s.file(name))
		}
		s.passes()
		s.mustRun()
		for name, text := range before {
			if got := string(s.file(name)); got != text {
				t.Errorf("%s changed from\n%s\nto\n%s", name, text, got)
			}
		}
		if tokens := s.tokens(); len(tokens) != 1 {
			t.Errorf("tokens = %v, want one", tokens)
		}
		for _, c := range s.instance("web", "web-"+s.taskID).Checks {
			if c.Status != "passing" {
				t.Errorf("check %s is %s", c.CheckID, c.Status)
			}
		}
	}
}

// passes makes all checks of the service passing, as health-sync does.
func (s *fixture) passes() {
	s.t.Helper()
	checks := s.instance("web", "web-"+s.taskID).Checks
	for _, c := range checks {
		c.Status = "passing"
	}
	_, err := s.admin().Catalog().Register(
		&api.CatalogRegistration{Node: s.node(), SkipNodeUpdate: true, Checks: checks}, nil)
	s.must(err)
}

// A failed second run leaves registration, token and files to the proxy that runs with
// them, also when its own login was needed.
func TestAgentlessFailedRerunKeepsTheFirstRun(t *testing.T) {
	t.Parallel()
	for name, loggedOut := range map[string]bool{"with the first run's token": false, "with its own token": true} {
		for _, doc := range []string{serversLoginDoc, direct(serversLoginDoc)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newFixture(t, secured, doc)
				s.mustRun()
				if loggedOut {
					_, err := s.admin().ACL().Logout(
						&api.WriteOptions{Token: string(s.file(workload.FileServiceToken))})
					s.must(err)
				}
				s.deps.Redirect = redirection{apply: errors.New("no iptables"), requests: s.requests}
				if err := s.run(); err == nil || !strings.Contains(err.Error(), "no iptables") {
					t.Fatalf("error = %v", err)
				}
				if steps := s.requests.list(); steps[len(steps)-1] != "resume" {
					t.Errorf("the redirection of the first run is not restored: %v", steps)
				}
				s.instance("web", "web-"+s.taskID)
				s.instance("web-sidecar-proxy", "web-"+s.taskID+"-sidecar-proxy")
				secret := string(s.file(workload.FileServiceToken))
				if _, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: secret}); err != nil {
					t.Errorf("the token in the files: %v", err)
				}
				if doc == serversLoginDoc && !strings.Contains(string(s.file(workload.FileDataplane)), secret) {
					t.Error("consul-dataplane.json has another token")
				}
				if tokens := s.tokens(); len(tokens) != 1 {
					t.Errorf("tokens = %v, want one", tokens)
				}
			})
		}
	}
}
