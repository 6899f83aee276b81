package meshinit_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/workload"
)

// A failed second run leaves the first one's registration, files and token
// alone: the task's Envoy may be running with them.
func TestFailedRerunKeepsTheFirstRun(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.mustRun()
	token := string(s.file(workload.FileServiceToken))
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/agent/service/") {
			http.Error(w, "no way", http.StatusBadRequest)
			return true
		}
		return false
	}
	if err := s.run(); cli.ExitCode(err) != 2 {
		t.Fatalf("error = %v, want a refusal", err)
	}
	s.service("web-" + s.taskID)
	s.service("web-" + s.taskID + "-sidecar-proxy")
	if got := string(s.file(workload.FileServiceToken)); got != token {
		t.Error("the token file changed")
	}
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want the first run's", tokens)
	}
}

// A second run that fails between its files leaves those that are there to the task's
// Envoy and health-sync, which may start again, and the token in them: its own, too, where
// the first run's is of no use any more.
func TestRerunThatFailsBetweenItsFilesRemovesNone(t *testing.T) {
	t.Parallel()
	for name, loggedOut := range map[string]bool{"with the first run's token": false, "with its own token": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, loginDoc)
			s.mustRun()
			if loggedOut {
				if _, err := s.admin().ACL().Logout(
					&api.WriteOptions{Token: string(s.file(workload.FileServiceToken))}); err != nil {
					t.Fatal(err)
				}
			}
			registered := make(chan struct{})
			s.requests.spoil = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/agent/service/") {
					close(registered)
				}
				return false
			}
			s.deps.CopyProgram = func(string) error {
				<-registered // after the login, which reads the token
				path := s.dir + "/" + workload.FileServiceToken
				return errors.Join(os.Remove(path), os.MkdirAll(path+"/in the way", 0o755))
			}
			if err := s.run(); err == nil {
				t.Fatal("no error")
			}
			s.file(workload.FileBinary)
			tokens := s.tokens()
			if len(tokens) != 1 {
				t.Fatalf("tokens = %v, want one", tokens)
			}
			token, _, err := s.admin().ACL().TokenRead(tokens[0], nil)
			if err != nil || !strings.Contains(string(s.file(workload.FileBootstrap)), token.SecretID) {
				t.Errorf("the bootstrap does not have the token that is there: %v", err)
			}
		})
	}
}

// The proxy presents the first run's token for as long as it runs, so a second run
// keeps it, and replaces the files. Version 0.6 could not replace its own.
func TestRerunKeepsTheTokenThatTheProxyPresents(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.mustRun()
	first := string(s.file(workload.FileServiceToken))
	s.mustRun()
	if second := string(s.file(workload.FileServiceToken)); second != first {
		t.Error("the token changed")
	}
	if _, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: first}); err != nil {
		t.Errorf("the first run's token: %v", err)
	}
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want one", tokens)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 4 {
		t.Errorf("files = %v, %v, want bootstrap, token, program and status", entries, err)
	}
}

func TestRerunLogsInWhenThePreviousTokenIsInvalid(t *testing.T) {
	t.Parallel()
	for name, previous := range map[string]func(s *fixture) string{
		"logged out": func(*fixture) string { return "11111111-1111-1111-1111-111111111111" },
		"another's":  func(s *fixture) string { return s.server.Token },
		"another task": func(s *fixture) string {
			other := newFixture(t, secured, loginDoc)
			other.mustRun()
			return string(other.file(workload.FileServiceToken))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, loginDoc)
			secret := previous(s)
			if err := os.WriteFile(s.options.Config.BootstrapDir+"/"+workload.FileServiceToken, []byte(secret),
				0o600); err != nil {
				t.Fatal(err)
			}
			s.mustRun()
			if got := string(s.file(workload.FileServiceToken)); got == secret {
				t.Error("the token did not change")
			}
			if tokens := s.tokens(); len(tokens) != 1 {
				t.Errorf("tokens = %v, want one", tokens)
			}
		})
	}
}

// An agent that was restarted after the registration has lost it.
func TestLostRegistrationIsRepeated(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, plainDoc)
	var restarted atomic.Bool
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/agent/service/") &&
			restarted.CompareAndSwap(false, true) {
			for _, id := range []string{"web-" + s.taskID + "-sidecar-proxy", "web-" + s.taskID} {
				if err := s.admin().Agent().ServiceDeregister(id); err != nil {
					t.Error(err)
				}
			}
		}
		return false
	}
	s.mustRun()
	s.service("web-" + s.taskID)
	s.service("web-" + s.taskID + "-sidecar-proxy")
}

// TestFailedRerunKeepsTheFirstRunsFiles: they belong to containers that run.
func TestFailedRerunKeepsTheFirstRunsFiles(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.mustRun()
	before := string(s.file(workload.FileServiceToken))
	defer func() { s.file(workload.FileBinary) }() // health checks execute it
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/agent/service/register" {
			http.Error(w, "no", http.StatusBadRequest)
			return true
		}
		return false
	}
	if err := s.run(); err == nil {
		t.Fatal("no error")
	}
	if got := string(s.file(workload.FileServiceToken)); got != before {
		t.Error("the token file changed")
	}
	if _, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: before}); err != nil {
		t.Errorf("the first run's token: %v", err)
	}
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want the first run's only", tokens)
	}
}
