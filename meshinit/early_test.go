package meshinit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// TestWrongGRPCAddressCostsNoToken: it used to be found after the registration.
func TestWrongGRPCAddressCostsNoToken(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"consul", "consul:", ":8502", "127.0.0.1:0",
		"127.0.0.1:70000", "127.0.0.1:grpc", "unix://", "tcp://127.0.0.1:8502", "http://127.0.0.1:8502/"} {
		s := newFixture(t, secured, loginDoc)
		s.options.Proxy = meshinit.AgentProxy{GRPC: meshinit.GRPC{Address: address}}
		err := s.run()
		if cli.ExitCode(err) != 1 ||
			!strings.Contains(err.Error(), `"`+address+`" (CONSUL_GRPC_ADDR): want <host>:<port>`) {
			t.Errorf("%s: exit %d: %v", address, cli.ExitCode(err), err)
		}
		if got := s.requests.list(); len(got) != 0 {
			t.Errorf("%s: requests = %v, want none", address, got)
		}
		s.wantNothing()
	}
}

// TestUnsignedLoginNamesTheTaskRole: Consul's address has no part in it.
func TestUnsignedLoginNamesTheTaskRole(t *testing.T) {
	t.Parallel()
	var problems []string
	for _, limit := range limits() {
		s := newFixture(t, secured, loginDoc)
		s.options.Limit = limit
		s.bearer = func(context.Context, workload.Task) (string, error) { return "", errors.New("no credentials") }
		err := s.run()
		s.wantNothing()
		if strings.Contains(fmt.Sprint(err), "consulHTTPAddr") {
			t.Errorf("error names Consul's address: %v", err)
		}
		if problems = differs(err, 3, []string{"sign the login: no credentials", "taskRoleArn"}); len(problems) == 0 {
			return
		}
	}
	t.Error(problems)
}

// TestHungVolumeDoesNotKeepTheToken: TERM ends the wait for the copy,
// and the logout does not wait for it.
func TestHungVolumeDoesNotKeepTheToken(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	s.deps.CopyProgram = func(string) error {
		<-release
		return nil
	}
	s.requests.after = func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/agent/service/") {
			cancel(&exit.SignalError{Signal: syscall.SIGTERM})
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- meshinit.Run(ctx, s.options, s.deps) }()
	testkit.Eventually(t, "the token is logged out", func() bool {
		return strings.Contains(s.log.String(), "logged in") && len(s.tokens()) == 0
	})
	close(release)
	var signal *exit.SignalError
	if err := <-ended; !errors.As(err, &signal) {
		t.Errorf("error = %v, want the signal as cause", err)
	}
	s.wantNothing()
}

func copyFails(err error) func(*fixture) {
	return func(s *fixture) { s.deps.CopyProgram = func(string) error { return err } }
}

// TestUnreplicatedTokenErrorNamesOneRemedy: that of the wait, not that of a wrong
// CONSUL_HTTP_TOKEN.
func TestUnreplicatedTokenErrorNamesOneRemedy(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		self := r.URL.Path == "/v1/acl/token/self"
		if self {
			http.Error(w, "ACL not found", http.StatusForbidden)
		}
		return self
	}
	err := s.run()
	testkit.Equal(t, "exit code", cli.ExitCode(err), 3)
	if n := strings.Count(err.Error(), "wait for token replication"); n != 1 {
		t.Errorf("%d times in the error that it waited, want once: %v", n, err)
	}
	if strings.Contains(err.Error(), "CONSUL_HTTP_TOKEN") {
		t.Errorf("the error names CONSUL_HTTP_TOKEN: %v", err)
	}
	s.wantNothing()
}
