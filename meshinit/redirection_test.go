package meshinit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/bootstrap"
)

// redirection has the results of its steps.
type redirection struct {
	prepare, apply error
	// requests, if not nil, record the steps among the requests.
	requests *requests
}

func (r redirection) Prepare() error {
	r.note("remove")
	return r.prepare
}

func (r redirection) Apply(bootstrap.Proxy) error {
	r.note("apply")
	return r.apply
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
	s := newScene(t, secured, serversLoginDoc)
	s.ports.Redirect = redirection{prepare: errors.New("iptables: permission denied")}
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
		s := newScene(t, secured, doc)
		s.ports.Redirect = redirection{apply: errors.New("no iptables"), requests: s.requests}
		if err := s.run(); err == nil || !strings.Contains(err.Error(), "no iptables") {
			t.Errorf("error = %v", err)
		}
		s.wantNothing()
		got := s.requests.list()
		if after := got[slices.Index(got, "apply")+1:]; len(after) < 3 || after[0] != "remove" || slices.Contains(after, "apply") {
			t.Errorf("after the failure: %v, want remove and requests", after)
		}
	}
}
