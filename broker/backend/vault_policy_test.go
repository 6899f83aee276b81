package backend_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
)

// Without one of its capabilities, the broker's token cannot do its work.
func TestDocumentedVaultPolicyIsExactlyEnough(t *testing.T) {
	t.Parallel()
	_, w := vaultBroker(t)
	rules := documentedPolicy(t)
	all := regexp.MustCompile(`"(update|sudo|read)"`).FindAllStringIndex(rules, -1)
	if len(all) < 5 {
		t.Fatalf("%d capabilities in\n%s", len(all), rules)
	}
	for i, at := range append(all, []int{0, 0}) {
		name := "token-broker-without-" + string(rune('a'+i))
		reduced := strings.NewReplacer("[, ", "[", ", ]", "]").Replace(rules[:at[0]] + rules[at[1]:])
		w.Policy(t, name, reduced)
		own, _ := w.Token(t, map[string]any{"policies": []string{name}})
		err := w.work(t, w.backend(t, own))
		switch {
		case at[1] == 0 && err != nil:
			t.Errorf("the documented policy is not enough: %v", err)
		case at[1] > 0 && !errors.Is(err, backend.ErrPrivilege):
			t.Errorf("without %s: %v, want a lack of privilege with\n%s", rules[at[0]:at[1]], err, reduced)
		}
	}
}

// work does what the broker does for a task.
func (w *vaultWorld) work(t *testing.T, b *backend.VaultBackend) error {
	g, err := b.Issue(t.Context(), request("web-config"))
	if err != nil {
		return err
	}
	token, err := b.Redeem(t.Context(), g)
	if err != nil {
		return err
	}
	_, _, err = b.Expiry(t.Context(), token.Accessor)
	return errors.Join(err, b.Revoke(t.Context(), token.Accessor))
}

// The token role bounds the policies, whatever the broker asks for.
func TestVaultRoleBoundsThePolicies(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	w.Policy(t, "admin", `path "*" { capabilities = ["sudo", "update"] }`)
	_, err := b.Issue(t.Context(), request("web-config", "admin"))
	wantError(t, err, backend.ErrPrivilege, "must be subset of the role's allowed policies", "token role")
	status, _ := w.Do(t, http.MethodPost, "auth/token/create-orphan", w.own,
		map[string]any{"policies": []string{"admin"}})
	if status != http.StatusForbidden {
		t.Errorf("create-orphan answers the broker's token with %d", status)
	}
}

// withRole returns a backend of a token role of the test's own.
func (w *vaultWorld) withRole(t *testing.T, name string, body map[string]any) *backend.VaultBackend {
	t.Helper()
	body["allowed_policies_glob"] = []string{"web-*"}
	w.Role(t, name, body)
	w.Policy(t, name, strings.ReplaceAll(documentedPolicy(t), "create/token-broker", "create/"+name))
	own, _ := w.Token(t, map[string]any{"policies": []string{name}})
	b := w.backend(t, own)
	b.Role = name
	return b
}

// A role that is not orphan makes tokens that end with the broker's.
func TestVaultRoleIsOrphan(t *testing.T) {
	t.Parallel()
	_, w := vaultBroker(t)
	b := w.withRole(t, "token-broker-child", map[string]any{})
	g := issue(t, b, request("web-config"))
	_, err := b.Redeem(t.Context(), g)
	if err == nil || !strings.Contains(err.Error(), "vault write auth/token/roles/token-broker-child orphan=true") {
		t.Errorf("Redeem: %v, want the command that corrects the role", err)
	}
	if _, found := w.Lookup(t, g.Accessor); found {
		t.Error("the token is still there")
	}
}

// Tokens of a role that forbids renewal are replaced.
func TestVaultTokenThatCannotBeRenewedHasNoPeriod(t *testing.T) {
	t.Parallel()
	_, w := vaultBroker(t)
	b := w.withRole(t, "token-broker-fixed", map[string]any{"orphan": true, "renewable": false})
	token := redeem(t, b, issue(t, b, request("web-config")))
	if token.Period != 0 {
		t.Errorf("period %s, want 0: the token is to be replaced", token.Period)
	}
	if life := time.Until(token.Expires); !within(life, 2*time.Hour) {
		t.Errorf("the token expires in %s, want 2h", life)
	}
	_, err := w.client(t).RenewSelf(t.Context(), token.Secret)
	if err == nil || !strings.Contains(err.Error(), "lease is not renewable") {
		t.Errorf("RenewSelf: %v", err)
	}
}
