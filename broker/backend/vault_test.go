package backend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/vault"
)

func TestVaultNeverGivesRoot(t *testing.T) {
	t.Parallel()
	b, _ := vaultBroker(t)
	for _, name := range []string{"root", "Root", "rOOt", " root", "root\u00a0"} {
		_, err := b.Issue(t.Context(), request("web-config", name))
		wantError(t, err, backend.ErrPolicy, fmt.Sprintf("policy %q", name), "never")
	}
}

// Vault finds a policy by a name that its patterns, as the broker compares them, do not have.
func TestVaultPolicyIsNamedAsVaultDoes(t *testing.T) {
	t.Parallel()
	b, _ := vaultBroker(t)
	_, err := b.Issue(t.Context(), request("Web-CONFIG"))
	wantError(t, err, backend.ErrPolicy, `policy "Web-CONFIG"`, `"web-config"`)
}

func TestVaultAnswersHaveClasses(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	for status, want := range map[int]retry.Class{
		http.StatusServiceUnavailable: retry.NotYet,
		http.StatusTooManyRequests:    retry.NotYet,
		http.StatusPreconditionFailed: retry.NotYet,
		http.StatusBadRequest:         retry.Permanent, // of the policy, which is read first
		http.StatusTemporaryRedirect:  retry.NotYet,
		http.StatusForbidden:          retry.Permanent,
	} {
		w.front.Answer(status)
		_, err := b.Issue(t.Context(), request("web-config"))
		t.Logf("status %d", status)
		wantClass(t, err, want, "web-config")
	}
	away := &backend.VaultBackend{Client: vaultClient(t,
		backend.VaultOptions{Address: "http://" + testkit.ClosedAddress(t)}), Token: b.Token}
	if _, err := away.Issue(t.Context(), request("web-config")); !consulutil.Unreachable(err) {
		t.Errorf("no server: error %v of class %d, want Unreachable", err, consulutil.Classify(err))
	}
}

func TestRequestToASilentVaultEnds(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	_, err := vaultClient(t, backend.VaultOptions{Address: silent.URL}).RenewSelf(context.Background(),
		secret.New("hvs.x"))
	wantClass(t, err, retry.NotYet, "Timeout exceeded")
}

func TestVaultTokenDoesNotFollowARedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s with token %q", r.URL, r.Header.Get("X-Vault-Token"))
	}))
	t.Cleanup(other.Close)
	standby := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(standby.Close)
	_, err := vaultClient(t, backend.VaultOptions{Address: standby.URL}).RenewSelf(t.Context(), secret.New("hvs.x"))
	if err == nil || !strings.Contains(err.Error(), "address of the active node") {
		t.Errorf("RenewSelf: %v, want the remedy of a redirect", err)
	}
}

func TestAnswerOfAnotherServerIsNotQuoted(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"auth": {"client_token": "hvs.hidden", "lease_duration": "hvs.hidden"`))
	}))
	t.Cleanup(page.Close)
	_, err := vaultClient(t, backend.VaultOptions{Address: page.URL}).RenewSelf(t.Context(), secret.New("hvs.x"))
	if got := fmt.Sprint(err); !strings.Contains(got, "check the address") || strings.Contains(got, "hvs.") {
		t.Errorf("RenewSelf: got %v, want a remedy and nothing of the answer", err)
	}
}

func TestVaultOptionsAreChecked(t *testing.T) {
	t.Parallel()
	noCA := filepath.Join(t.TempDir(), "ca.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]backend.VaultOptions{
		`address of Vault "vault:8200": want https://`:               {Address: "vault:8200"},
		`"http://vault:8200": want https://`:                         {Address: "http://vault:8200"},
		`"https://user:xxxxx@vault:8200": want https://host[:port],`: {Address: "https://user:hidden@vault:8200"},
		`"https://vault:8200?ns=a": want https://`:                   {Address: "https://vault:8200?ns=a"},
		"address of Vault: parse":                                    {Address: "https://vault:82 00"},
		"no such file":                                               {Address: "https://vault:8200", CAFile: noCA},
		"has no certificate":                                         {Address: "https://vault:8200", CAFile: empty},
	} {
		if _, err := backend.NewVaultClient(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewClient(%+v): %v, want %q", o, err, want)
		}
	}
}

// Each endpoint's refusals and outages have the class by which callers retry or stop.
func TestVaultErrorsOfEachEndpoint(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	task := w.client(t)
	grant := issue(t, b, request("web-config"))
	for name, c := range map[string]struct {
		call func() error
		// of statuses that are not an outage: the class, and what the error is
		refused map[int]error
	}{
		"create": {func() error { _, err := b.Issue(t.Context(), request("web-config")); return err },
			map[int]error{403: backend.ErrPrivilege}},
		"unwrap": {func() error { _, err := b.Redeem(t.Context(), grant); return err }, nil},
		"lookup-accessor": {func() error { _, _, err := b.Expiry(t.Context(), grant.Accessor); return err },
			map[int]error{403: backend.ErrPrivilege}},
		"renew-self": {func() error { _, err := task.RenewSelf(t.Context(), secret.New("x")); return err },
			map[int]error{403: backend.ErrPrivilege}},
		"lookup-self": {func() error { _, err := task.LookupSelf(t.Context(), secret.New("x")); return err },
			map[int]error{403: backend.ErrPrivilege}},
		"revoke-self": {func() error { return task.RevokeSelf(t.Context(), secret.New("x")) },
			map[int]error{403: backend.ErrPrivilege}},
	} {
		for _, status := range []int{307, 412, 429, 472, 473, 500, 502, 503} {
			w.front.Answer(status)
			if err := c.call(); err == nil || !consulutil.Classify(err).Retryable() {
				t.Errorf("%s, status %d: %v, want an error that is retried", name, status, err)
			}
		}
		for status, want := range c.refused {
			w.front.Answer(status)
			err := c.call()
			if retried := err != nil && consulutil.Classify(err).Retryable(); retried || !errors.Is(err, want) {
				t.Errorf("%s, status %d: got %v, want %v", name, status, err, want)
			}
		}
	}
	w.front.AnswerAs(nil)
	if _, err := b.Redeem(t.Context(), grant); err != nil {
		t.Errorf("the grant did not survive: %v", err)
	}
}

// Every refusal of a revocation may pass, and the token lives until then.
func TestVaultRevocationIsNeverRefusedPermanently(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	grant := issue(t, b, request("web-config"))
	for _, status := range []int{301, 307, 400, 403, 404, 405, 412, 429, 472, 473, 500, 502, 503} {
		w.front.Answer(status)
		if err := b.Revoke(t.Context(), grant.Accessor); err == nil || !consulutil.Classify(err).Retryable() {
			t.Errorf("status %d: %v, want an error that is retried", status, err)
		}
	}
	w.front.Answer(403)
	if err := b.Revoke(t.Context(), grant.Accessor); !errors.Is(err, backend.ErrPrivilege) {
		t.Errorf("%v, want that the broker lacks a privilege", err)
	}
}

// What answers in place of Vault knows no token and no policy, whatever its status.
func TestAnswerOfAnotherServerIsNoAnswerOfVault(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	task := w.client(t)
	grant := issue(t, b, request("web-config"))
	calls := map[string]func() error{
		"create":          func() error { _, err := b.Issue(t.Context(), request("web-config")); return err },
		"unwrap":          func() error { _, err := b.Redeem(t.Context(), grant); return err },
		"revoke-accessor": func() error { return b.Revoke(t.Context(), grant.Accessor) },
		"lookup-accessor": func() error { _, _, err := b.Expiry(t.Context(), grant.Accessor); return err },
		"renew-self":      func() error { _, err := task.RenewSelf(t.Context(), secret.New("x")); return err },
		"lookup-self":     func() error { _, err := task.LookupSelf(t.Context(), secret.New("x")); return err },
		"revoke-self":     func() error { return task.RevokeSelf(t.Context(), secret.New("x")) },
	}
	for _, body := range []string{"", "<html>not here</html>", `{"message": "no Route matched with those values"}`,
		"[]", "{}", `"ok"`} {
		for _, status := range []int{200, 204, 400, 403, 404} {
			w.front.AnswerAs(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				io.WriteString(w, body) // which 204 has not
			})
			for name, call := range calls {
				err := call()
				if err == nil || !consulutil.Classify(err).Retryable() {
					t.Errorf("%s, status %d, body %q: %v, want an error that is retried", name, status, body, err)
				}
				if errors.Is(err, backend.ErrPrivilege) {
					t.Errorf("%s, status %d, body %q: %v, want nothing about privileges", name, status, body, err)
				}
			}
		}
	}
	w.front.AnswerAs(nil)
	redeem(t, b, grant)
}

// The texts are Vault's: of revoke-accessor when the index of accessors outlives the token, and of
// lookup-accessor in several versions.
func TestVaultKnowsNoTokenByItsOwnTextOnly(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	for _, tt := range []struct {
		status            int
		text              string
		revoked, notFound bool
	}{
		{400, "token not found", true, true},
		{400, "1 error occurred:\n\t* invalid accessor\n\n", true, true},
		{403, "1 error occurred:\n\t* invalid accessor\n\n", true, true},
		{404, "1 error occurred:\n\t* invalid accessor\n\n", true, true},
		{404, `no handler for route "auth/token/revoke-accessor". route entry not found.`, false, false},
		{403, "permission denied", false, false},
		{403, "bad token", false, false}, // also of the broker's own
	} {
		w.front.AnswerAs(func(w http.ResponseWriter, _ *http.Request) { vault.Refuse(w, tt.status, tt.text) })
		if err := b.Revoke(t.Context(), "a"); (err == nil) != tt.revoked {
			t.Errorf("%d %q: Revoke: %v", tt.status, tt.text, err)
		}
		if _, alive, err := b.Expiry(t.Context(), "a"); alive || (err == nil) != tt.notFound {
			t.Errorf("%d %q: Expiry: %v, %v", tt.status, tt.text, alive, err)
		}
	}
}

// Vault's texts distinguish a refusal from a leader or a storage that was lost during the request.
func TestVaultRefusesByItsOwnTextOnly(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	grant := issue(t, b, request("web-config"))
	issueAgain := func() error { _, err := b.Issue(t.Context(), request("web-config")); return err }
	unwrap := func() error { _, err := b.Redeem(t.Context(), grant); return err }
	for _, tt := range []struct {
		path, text string
		call       func() error
		status     int
		want       error
	}{
		{"auth/token/create/", "failed to persist accessor index entry: leadership lost while committing log",
			issueAgain, 400, nil},
		{"auth/token/create/", "root or sudo privileges required to create periodic token", issueAgain, 400,
			backend.ErrPrivilege},
		{"auth/token/create/", "unknown role token-broker", issueAgain, 400, backend.ErrPrivilege},
		{"sys/wrapping/unwrap", "error validating wrapping token: leadership lost while committing log", unwrap, 403,
			nil},
		{"sys/wrapping/unwrap", "wrapping token is not valid or does not exist", unwrap, 400, backend.ErrUsed},
	} {
		w.front.RefuseAt(tt.path, tt.status, tt.text)
		err := tt.call()
		if tt.want != nil {
			wantError(t, err, tt.want, tt.text)
			continue
		}
		if err == nil || !consulutil.Classify(err).Retryable() {
			t.Errorf("%d %q: %v, want an error that is retried", tt.status, tt.text, err)
		}
		for _, refusal := range []error{backend.ErrPrivilege, backend.ErrUsed} {
			if errors.Is(err, refusal) {
				t.Errorf("%d %q: %v, want no refusal", tt.status, tt.text, err)
			}
		}
	}
	w.front.AnswerAs(nil)
	redeem(t, b, grant)
}
