package meshinit_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// redirection has the results of its steps.
type redirection struct {
	suspend, apply error
	// requests, if not nil, record the steps among the requests.
	requests *requests
}

func (r redirection) Suspend() error {
	r.note("suspend")
	return r.suspend
}

func (r redirection) Apply(bootstrap.Proxy) error {
	r.note("apply")
	return r.apply
}

func (r redirection) Restore(remove bool) error {
	if remove {
		r.note("remove")
	} else {
		r.note("resume")
	}
	return nil
}

func (r redirection) note(step string) {
	if r.requests != nil {
		r.requests.mu.Lock()
		defer r.requests.mu.Unlock()
		r.requests.seen = append(r.requests.seen, step)
	}
}

// A container that may not change its network ends before it registers anything.
func TestAgentlessForbiddenRedirectionFailsBeforeTheLogin(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, serversLoginDoc)
	s.deps.Redirect = redirection{suspend: errors.New("iptables: permission denied")}
	if err := s.run(); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("error = %v", err)
	}
	if got := s.requests.list(); len(got) != 0 {
		t.Errorf("requests = %v, want none", got)
	}
	s.wantNothing()
}

// The redirection is the last that may fail. It is undone before the requests, which it would
// lead to the proxy.
func TestAgentlessFailedRedirectionUndoesRegistrationAndLogin(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{serversLoginDoc, direct(serversLoginDoc)} {
		s := newFixture(t, secured, doc)
		s.deps.Redirect = redirection{apply: errors.New("no iptables"), requests: s.requests}
		if err := s.run(); err == nil || !strings.Contains(err.Error(), "no iptables") {
			t.Errorf("error = %v", err)
		}
		s.wantNothing()
		got := s.requests.list()
		if after := got[slices.Index(got, "apply")+1:]; len(after) < 3 || after[0] != "remove" ||
			slices.Contains(after, "apply") {
			t.Errorf("after the failure: %v, want remove and requests", after)
		}
	}
}

// A run that fails before its redirection leaves that of an earlier run in effect: the task
// that it made ready runs with it.
func TestAgentlessRunThatFailsEarlyResumesTheRedirection(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*fixture){
		"without metadata": func(s *fixture) {
			s.options.Limit = time.Second
			s.deps.Metadata = awsutil.NewMetadataClient("http://" + testkit.ClosedAddress(s.t))
		},
		"refused by Consul": func(s *fixture) {
			s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && r.URL.Path == "/v1/catalog/register" {
					http.Error(w, "no way", http.StatusBadRequest)
					return true
				}
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, secured, serversLoginDoc)
			s.deps.Redirect = redirection{requests: s.requests}
			s.mustRun()
			fail(s)
			if err := s.run(); err == nil {
				t.Fatal("the second run has not failed")
			}
			steps := slices.DeleteFunc(s.requests.list(), func(step string) bool { return strings.Contains(step, "/") })
			if want := []string{"suspend", "apply", "suspend", "resume"}; !slices.Equal(steps, want) {
				t.Errorf("steps %q, want %q", steps, want)
			}
		})
	}
}
