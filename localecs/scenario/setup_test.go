package scenario

import (
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// newConsul starts a server with ACLs for one test, and returns a client of its administrator.
func newConsul(t *testing.T) *api.Client {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAuthMethodsBind: a service identity, or a role with rules.
func TestAuthMethodsBind(t *testing.T) {
	t.Parallel()
	client := newConsul(t)
	const rules = `node_prefix "" { policy = "write" }`
	trusted := []string{"arn:aws:iam::123456789012:role/consul-ecs/*"}
	scenario := &file.Consul{AuthMethods: []file.AuthMethod{
		{Name: "services", BoundPrincipals: trusted, BindService: "web"},
		{Name: "clients", BoundPrincipals: trusted, BindRules: rules},
	}}
	if _, err := setUp(t.Context(), scenario, client, "http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]api.ACLBindingRule{
		"services": {BindType: "service", BindName: "web"},
		"clients":  {BindType: "role", BindName: "clients"},
	} {
		got, _, err := client.ACL().BindingRuleList(method, nil)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", method, got, err)
		}
		testkit.Equal(t, method+": got[0].BindType", got[0].BindType, want.BindType)
		testkit.Equal(t, method+": got[0].BindName", got[0].BindName, want.BindName)
	}
	role, _, err := client.ACL().RoleReadByName("clients", nil)
	if err != nil || role == nil {
		t.Fatalf("role %+v, %v", role, err)
	}
	if len(role.Policies) != 1 {
		t.Fatalf("role %+v, %v", role, err)
	}
	policy, _, err := client.ACL().PolicyRead(role.Policies[0].ID, nil)
	if err != nil || policy.Rules != rules {
		t.Errorf("policy %+v, %v", policy, err)
	}
	for name, wrong := range map[string]file.AuthMethod{"neither": {Name: "x"},
		"both": {Name: "x", BindService: "web", BindRules: rules}} {
		if _, err := setUp(t.Context(), &file.Consul{AuthMethods: []file.AuthMethod{wrong}}, client,
			"http://127.0.0.1:1"); err == nil || err.Error() != "auth method x: want either bindService or bindRules" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The server takes what the file has, also of kinds to which the API package adds fields
// that it does not know; what it refuses is named.
func TestConfigEntriesAreWrittenAsTheyAre(t *testing.T) {
	t.Parallel()
	client := newConsul(t)
	entry := map[string]any{"Kind": "api-gateway", "Name": "edge", "Listeners": []any{
		map[string]any{"Name": "http", "Port": 8443, "Protocol": "http"},
	}}
	if _, err := setUp(t.Context(), &file.Consul{ConfigEntries: []map[string]any{entry}}, client, ""); err != nil {
		t.Fatal(err)
	}
	got, _, err := client.ConfigEntries().Get("api-gateway", "edge", nil)
	if err != nil {
		t.Fatal(err)
	}
	if listeners := got.(*api.APIGatewayConfigEntry).Listeners; len(listeners) != 1 || listeners[0].Port != 8443 {
		t.Errorf("listeners %+v", listeners)
	}
	wrong := map[string]any{"Kind": "api-gateway", "Name": "edge", "Listener": 1}
	_, err = setUp(t.Context(), &file.Consul{ConfigEntries: []map[string]any{wrong}}, client, "")
	if err == nil || !strings.HasPrefix(err.Error(), "config entry api-gateway/edge: ") {
		t.Errorf("error %v", err)
	}
}
