package subcommand

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// The help of -backend and token-receive have each backend of the table, and no other name is one.
func TestEveryTokenBackendIsKnown(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CONSUL_HTTP_ADDR": "http://127.0.0.1:8500", "VAULT_ADDR": "http://127.0.0.1:8200"}
	inv := &cli.Invocation{Getenv: func(key string) string { return env[key] }, Log: hclog.NewNullLogger()}
	actions, err := tokenActions(inv)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.FieldsFunc(namesWhere(anyBackend), func(r rune) bool { return r == ' ' || r == ',' })
	for _, k := range tokenBackends {
		if !slices.Contains(names, k.name) {
			t.Errorf("the help of -backend has %q, want also %q", names, k.name)
		}
		if actions[k.name].Alive == nil {
			t.Errorf("token-receive cannot look up tokens of %q", k.name)
		}
	}
	if _, err := tokenBackendOf("consul"); err == nil {
		t.Error("a backend with an unknown name is not refused")
	}
}
