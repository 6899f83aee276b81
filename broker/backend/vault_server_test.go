package backend_test

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/vault"
)

// What the server does with the broker's requests. The cases are the same for the fake and
// for the program that VAULT_BIN names.

func TestVaultTokenDescribesItsTask(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	r := request("web-queue", "web-config")
	r.Task.Name = "web_api"
	g := issue(t, b, r)
	token, found := w.Lookup(t, g.Accessor)
	if !found {
		t.Fatal("the server does not know the accessor of the grant")
	}
	for field, want := range map[string]any{
		"orphan": true, "display_name": "token-web-api", "period": 7200.0, "renewable": true,
		"path": "auth/token/create/token-broker",
	} {
		if token[field] != want {
			t.Errorf("%s is %v, want %v", field, token[field], want)
		}
	}
	if policies := token["policies"]; !slices.Equal(policies.([]any), []any{"default", "web-config", "web-queue"}) {
		t.Errorf("policies %v", policies)
	}
	want := map[string]any{
		"task_arn": r.Task.ARN, "cluster": r.Task.Cluster, "task_ip": "10.0.0.7", "family": "web",
		"revision": "3", "az": "eu-west-1a", "request_id": r.RequestID,
	}
	if meta := token["meta"]; !maps.Equal(meta.(map[string]any), want) {
		t.Errorf("meta %v, want %v", meta, want)
	}
	redeemed := redeem(t, b, g)
	if redeemed.Period != 2*time.Hour {
		t.Errorf("period %s, want 2h", redeemed.Period)
	}
	if redeemed.Accessor != g.Accessor {
		t.Errorf("accessor %s, want the grant's, %s", redeemed.Accessor, g.Accessor)
	}
}

func TestVaultHandleNamesItsCreation(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	g := issue(t, b, request("web-config"))
	status, wrapped := w.Do(t, http.MethodPost, "sys/wrapping/lookup", "",
		map[string]string{"token": g.Handle.Reveal()})
	if status != http.StatusOK {
		t.Fatalf("sys/wrapping/lookup: %d %v", status, wrapped.Errors)
	}
	if path := wrapped.Data["creation_path"]; path != "auth/token/create/token-broker" {
		t.Errorf("creation path %v", path)
	}
	if ttl := wrapped.Data["creation_ttl"]; ttl != 120.0 {
		t.Errorf("creation ttl %v, want 120", ttl)
	}
	redeem(t, b, g) // a look-up does not use the handle
}

func TestVaultHandleEndsByTheClockOfVault(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	b.GrantTTL = 2 * time.Second
	g := issue(t, b, request("web-config"))
	w.Pass(t, 2*time.Second)
	g.Expires = time.Now().Add(time.Minute) // by the clock of a broker that is behind
	_, err := b.Redeem(t.Context(), g)
	wantError(t, err, backend.ErrUsed, g.Request.Task.ARN)
	if _, found := w.Lookup(t, g.Accessor); !found {
		t.Error("the token has ended with its handle, want it to be revocable")
	}
	if err := b.Revoke(t.Context(), g.Accessor); err != nil {
		t.Error(err)
	}
	if _, found := w.Lookup(t, g.Accessor); found {
		t.Error("the token that was not redeemed is still there")
	}
}

func TestVaultTokenIsRenewedWithoutTheBroker(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	token := redeem(t, b, issue(t, b, request("web-config")))
	task := w.client(t)
	life, err := task.RenewSelf(t.Context(), token.Secret)
	if err != nil || life != 2*time.Hour {
		t.Errorf("RenewSelf = %v, %v; want 2h", life, err)
	}
	life, err = task.LookupSelf(t.Context(), token.Secret)
	if err != nil || !within(life, 2*time.Hour) {
		t.Errorf("LookupSelf = %v, %v; want 2h", life, err)
	}
	end, found, err := b.Expiry(t.Context(), token.Accessor)
	if err != nil || !found {
		t.Errorf("Expiry: got %v, %v, want the token", found, err)
	}
	if !within(time.Until(end), 2*time.Hour) {
		t.Errorf("Expiry: got %v, want 2h from now", end)
	}
}

// within reports whether a life is a full one, of which a minute may have passed.
func within(life, full time.Duration) bool {
	return life > full-time.Minute && life <= full+time.Second
}

func TestPeriodicVaultTokenLivesWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	task := w.client(t)
	text, accessor := w.Token(t, map[string]any{"policies": []string{"default"}, "period": "10s"})
	held := secret.New(text)
	for range 2 { // longer than the period
		w.Pass(t, 6*time.Second)
		if life, err := task.RenewSelf(t.Context(), held); err != nil || life != 10*time.Second {
			t.Fatalf("RenewSelf = %v, %v; want 10s", life, err)
		}
	}
	w.Pass(t, 10*time.Second)
	_, err := task.RenewSelf(t.Context(), held)
	wantError(t, err, backend.ErrPrivilege, "renew the Vault token", "expired or was revoked")
	_, err = task.LookupSelf(t.Context(), held)
	wantError(t, err, backend.ErrPrivilege, "look up the Vault token")
	eventuallyUnknown(t, b, accessor)
}

// eventuallyUnknown waits until the backend knows no token of the accessor: Vault forgets one
// that has expired a moment later.
func eventuallyUnknown(t *testing.T, b *backend.VaultBackend, accessor string) {
	t.Helper()
	testkit.Eventually(t, "the accessor is unknown", func() bool {
		_, found, err := b.Expiry(t.Context(), accessor)
		if err != nil {
			t.Fatal(err)
		}
		return !found
	})
}

func TestVaultTokenThatItsHolderRevokedIsGone(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	token := redeem(t, b, issue(t, b, request("web-config")))
	if err := w.client(t).RevokeSelf(t.Context(), token.Secret); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Revoke(t.Context(), token.Accessor); err != nil {
			t.Error(err)
		}
	}
	eventuallyUnknown(t, b, token.Accessor)
}

func TestVaultDoesNotKnowAForeignAccessor(t *testing.T) {
	t.Parallel()
	b, _ := vaultBroker(t)
	for _, accessor := range []string{"0b0c0000-0000-4000-8000-000000000001", "aBcDeFgHiJkLmNoPqRsTuVwX"} {
		if err := b.Revoke(t.Context(), accessor); err != nil {
			t.Error(err)
		}
		if _, found, err := b.Expiry(t.Context(), accessor); found || err != nil {
			t.Errorf("Expiry = %v, %v; want no token", found, err)
		}
	}
}

// A path that Vault does not serve is not an accessor that it does not know.
func TestWrongPathOfVaultRevokesNothing(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	g := issue(t, b, request("web-config"))
	paths := map[string]backend.VaultOptions{"mount": {Address: w.URL + "/v1/no/such/mount"},
		"prefix": {Address: w.URL + "/vault"}}
	if _, ok := w.WithNamespace(t, "team"); ok { // else it ignores the name
		paths["namespace"] = backend.VaultOptions{Address: w.URL, Namespace: "no-such-namespace"}
	}
	for name, o := range paths {
		wrong := &backend.VaultBackend{Client: vaultClient(t, o), Token: b.Token}
		if err := wrong.Revoke(t.Context(), g.Accessor); err == nil {
			t.Errorf("wrong %s: the token counts as revoked", name)
		}
		if _, found, err := wrong.Expiry(t.Context(), g.Accessor); err == nil {
			t.Errorf("wrong %s: Expiry = %v, want an error", name, found)
		}
		_, err := wrong.Issue(t.Context(), request("web-config"))
		if err == nil {
			t.Errorf("wrong %s: a grant was issued", name)
		}
		// Outside of its API, Vault answers as for a policy that it does not have.
		if name != "prefix" && errors.Is(err, backend.ErrPolicy) {
			t.Errorf("wrong %s: Issue: %v, want an error that is not the policy's", name, err)
		}
	}
	redeem(t, b, g)
}

func TestVaultInANamespace(t *testing.T) {
	t.Parallel()
	root := program.ForTest(t)
	s, ok := root.WithNamespace(t, "team")
	if !ok {
		t.Skip("the server has no namespaces")
	}
	w := newVaultWorld(t, s)
	b := w.backend(t, w.own)
	token := redeem(t, b, issue(t, b, request("web-config")))
	task := w.client(t)
	if life, err := task.RenewSelf(t.Context(), token.Secret); err != nil || life != 2*time.Hour {
		t.Errorf("RenewSelf = %v, %v; want 2h", life, err)
	}
	if _, found, err := b.Expiry(t.Context(), token.Accessor); err != nil || !found {
		t.Errorf("Expiry: %v, %v; want the token", found, err)
	}
	outside := &backend.VaultBackend{Client: vaultClient(t, backend.VaultOptions{Address: s.URL}), Token: b.Token}
	if err := outside.Revoke(t.Context(), token.Accessor); err == nil {
		t.Error("the broker's token revokes without its namespace")
	}
	if _, found := w.Lookup(t, token.Accessor); !found {
		t.Error("the token is gone")
	}
	if err := b.Revoke(t.Context(), token.Accessor); err != nil {
		t.Error(err)
	}
	eventuallyUnknown(t, b, token.Accessor)
}

// calls makes all calls that the broker and its tasks ask of Vault, by the token of a grant.
func (w *vaultWorld) calls(
	t *testing.T, b *backend.VaultBackend, g backend.Grant, held secret.Value,
) map[string]func() error {
	task := w.client(t)
	return map[string]func() error{
		"Issue":      func() error { _, err := b.Issue(t.Context(), request("web-config")); return err },
		"Redeem":     func() error { _, err := b.Redeem(t.Context(), g); return err },
		"Revoke":     func() error { return b.Revoke(t.Context(), g.Accessor) },
		"Expiry":     func() error { _, _, err := b.Expiry(t.Context(), g.Accessor); return err },
		"RenewSelf":  func() error { _, err := task.RenewSelf(t.Context(), held); return err },
		"LookupSelf": func() error { _, err := task.LookupSelf(t.Context(), held); return err },
		"RevokeSelf": func() error { return task.RevokeSelf(t.Context(), held) },
	}
}

// wantAwaited fails the test unless each call has an error that is retried.
func (w *vaultWorld) wantAwaited(t *testing.T, state string, calls map[string]func() error) {
	t.Helper()
	for name, call := range calls {
		if err := call(); err == nil || !consulutil.Classify(err).Retryable() {
			t.Errorf("%s: %s: %v of class %d, want an error that is retried", state, name, err,
				consulutil.Classify(err))
		}
	}
}

func TestSealedVaultIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newVaultWorld(t, vault.New(t)) // of its own: others would meet the seal
	b := w.backend(t, w.own)
	g := issue(t, b, request("web-config"))
	held := redeem(t, b, issue(t, b, request("web-config")))
	w.Seal(t)
	w.wantAwaited(t, "sealed", w.calls(t, b, g, held.Secret))
	w.Unseal(t)
	redeem(t, b, g)
	if _, err := w.client(t).RenewSelf(t.Context(), held.Secret); err != nil {
		t.Error(err)
	}
	if err := b.Revoke(t.Context(), held.Accessor); err != nil {
		t.Error(err)
	}
}

// A standby node redirects, or a load balancer answers with the status of its health check.
func TestStandbyVaultLosesNothing(t *testing.T) {
	t.Parallel()
	b, w := vaultBroker(t)
	g := issue(t, b, request("web-config"))
	held := redeem(t, b, issue(t, b, request("web-config")))
	health := `{"initialized":true,"sealed":false,"standby":true}`
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": http.RedirectHandler(w.URL, http.StatusTemporaryRedirect).ServeHTTP,
		"standby": func(rw http.ResponseWriter, _ *http.Request) {
			http.Error(rw, health, http.StatusTooManyRequests)
		},
		"perf standby": func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, health, 473) },
		"DR secondary": func(rw http.ResponseWriter, _ *http.Request) {
			vault.Refuse(rw, 472, "node is a DR secondary")
		},
		"no active node": func(rw http.ResponseWriter, _ *http.Request) {
			vault.Refuse(rw, 503, "no active Vault instance found")
		},
	} {
		w.front.AnswerAs(answer)
		w.wantAwaited(t, name, w.calls(t, b, g, held.Secret))
	}
	w.front.AnswerAs(nil)
	redeem(t, b, g)
	if err := b.Revoke(t.Context(), held.Accessor); err != nil {
		t.Error(err)
	}
}

// The broker's token ends, and an agent replaces its file.
func TestExpiredVaultTokenOfTheBrokerIsReplaced(t *testing.T) {
	t.Parallel()
	_, w := vaultBroker(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(life string) {
		own, _ := w.Token(t, map[string]any{"policies": []string{"token-broker"}, "ttl": life})
		if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := w.backend(t, "")
	b.Token = func() (secret.Value, error) { text, err := os.ReadFile(file); return secret.New(string(text)), err }
	write("3s")
	g := issue(t, b, request("web-config"))
	w.Pass(t, 3*time.Second)
	_, err := b.Issue(t.Context(), request("web-config"))
	if !errors.Is(err, backend.ErrPrivilege) || !strings.Contains(err.Error(), "or replace it if it has expired") {
		t.Errorf("Issue: %v, want the remedy of an expired token", err)
	}
	if err := b.Revoke(t.Context(), g.Accessor); !errors.Is(err, backend.ErrPrivilege) {
		t.Errorf("Revoke: %v, want a lack of privilege", err)
	}
	if _, found, err := b.Expiry(t.Context(), g.Accessor); !errors.Is(err, backend.ErrPrivilege) {
		t.Errorf("Expiry = %v, %v, want a lack of privilege", found, err)
	}
	write("1h")
	redeem(t, b, issue(t, b, request("web-config")))
	if err := b.Revoke(t.Context(), g.Accessor); err != nil {
		t.Error(err)
	}
	if _, found := w.Lookup(t, g.Accessor); found {
		t.Error("the token is still there")
	}
}
