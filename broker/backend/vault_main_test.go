package backend_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit/vault"
)

// vaultWorld is a Vault server that is set up as documented, with a front before it.
type vaultWorld struct {
	*vault.Server
	front *vault.Front
	// own is the broker's token.
	own string
}

// newVaultWorld sets up the server, or a namespace of one.
func newVaultWorld(t *testing.T, s *vault.Server) *vaultWorld {
	t.Helper()
	s.Policy(t, "web-config", `path "secret/data/web" { capabilities = ["read"] }`)
	s.Policy(t, "web-queue", `path "secret/data/queue" { capabilities = ["read"] }`)
	s.Policy(t, "token-broker", documentedPolicy(t))
	s.Role(t, backend.VaultRole, map[string]any{"allowed_policies_glob": []string{"web-*", "missing"}, "orphan": true})
	w := &vaultWorld{Server: s, front: vault.NewFront(t, s)}
	w.own, _ = s.Token(t, map[string]any{"policies": []string{"token-broker"}, "period": "24h"})
	return w
}

// documentedPolicy returns the rules that docs/TOKENS.md shows.
func documentedPolicy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/vault-broker.hcl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// backend returns one whose own token is this one.
func (w *vaultWorld) backend(t *testing.T, own string) *backend.VaultBackend {
	t.Helper()
	return &backend.VaultBackend{Client: w.client(t), Token: func() (secret.Value, error) {
		return secret.New(own), nil
	}}
}

// client returns one of the front, as tasks have it.
func (w *vaultWorld) client(t *testing.T) *backend.VaultClient {
	t.Helper()
	return vaultClient(t, backend.VaultOptions{Address: w.front.URL, Namespace: w.Namespace})
}

func vaultClient(t *testing.T, o backend.VaultOptions) *backend.VaultClient {
	t.Helper()
	client, err := backend.NewVaultClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// vaultBroker returns a backend that may do what is documented, and its server.
func vaultBroker(t *testing.T) (*backend.VaultBackend, *vaultWorld) {
	t.Helper()
	w := newVaultWorld(t, program.ForTest(t))
	return w.backend(t, w.own), w
}

func vaultSystem(t *testing.T) system {
	w := newVaultWorld(t, program.ForTest(t))
	return system{
		process: func(t *testing.T, l *line, ttl time.Duration) backend.Backend {
			b := w.backend(t, w.own)
			b.GrantTTL = ttl
			return &interrupted{b, l, w.front}
		},
		unprivileged: func(t *testing.T) backend.Backend {
			own, _ := w.Token(t, map[string]any{"policies": []string{"default"}})
			return w.backend(t, own)
		},
		remedy: "give the broker's Vault token the policy and the token role that docs/TOKENS.md shows",
		lives: func(t *testing.T, text string) bool {
			status, _ := w.Do(t, http.MethodGet, "auth/token/lookup-self", text, nil)
			return status == http.StatusOK
		},
		exists:      func(t *testing.T, accessor string) bool { _, found := w.Lookup(t, accessor); return found },
		wrapsItself: true,
	}
}

// interrupted lets a sealed Vault stand for a line that is down.
type interrupted struct {
	backend.Backend
	line  *line
	front *vault.Front
}

func (i *interrupted) Redeem(ctx context.Context, g backend.Grant) (backend.Token, error) {
	if i.line.mode.Load() == down {
		i.front.Answer(http.StatusServiceUnavailable)
		defer i.front.AnswerAs(nil)
	}
	return i.Backend.Redeem(ctx, g)
}
