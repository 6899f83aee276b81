package setup

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// anonymousPolicies returns the names of the policies of requests without a token.
func anonymousPolicies(t *testing.T, s *Setup) (names []string) {
	t.Helper()
	token, _, err := s.Client.ACL().TokenRead(anonymousToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range token.Policies {
		names = append(names, p.Name)
	}
	return names
}

// TestAnonymousTokenGetsNothing: without the option nothing is granted, a grant of an earlier
// controller is reported once and stays, and what an operator removed is not restored.
func TestAnonymousTokenGetsNothing(t *testing.T) {
	t.Parallel()
	s, requests, log := ownServer(t, testkit.ConsulOptions{ACL: true})
	granting := s.Wanted
	s.Wanted = agentless(t, Options{})
	mustEnsure(t, s)
	if got := anonymousPolicies(t, s); len(got) > 0 {
		t.Errorf("granted %q", got)
	}
	if strings.Contains(log.String(), "anonymous") {
		t.Errorf("log without a grant:\n%s", log)
	}
	mustEnsure(t, &Setup{Client: s.Client, Wanted: granting, Log: s.Log})
	log.Reset()
	requests.writes()
	for range 2 {
		mustEnsure(t, s)
	}
	if w := requests.writes(); len(w) > 0 {
		t.Errorf("a grant that no option asks for: writes %q", w)
	}
	const remedy = "consul acl policy delete -name anonymous-token-policy"
	if n := strings.Count(log.String(), remedy); n != 1 {
		t.Errorf("%d lines with the command, want 1, in\n%s", n, log)
	}
	policy, _, err := s.Client.ACL().PolicyReadByName("anonymous-token-policy", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.ACL().PolicyDelete(policy.ID, nil); err != nil {
		t.Fatal(err)
	}
	mustEnsure(t, s)
	if got := anonymousPolicies(t, s); len(got) > 0 {
		t.Errorf("restored %q", got)
	}
}
