package consulutil

import (
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// grant makes a token with these rules.
func grant(t *testing.T, admin *api.Client, rules string) string {
	t.Helper()
	policy, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: uuid.New().String(), Rules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLTokenPolicyLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}

// TestDeregisterNode: the node of that ID with all that is on it, and no other.
func TestDeregisterNode(t *testing.T) {
	t.Parallel()
	admin := client(t, secured, secured.Token)
	ids := map[string]string{"node-to-go": uuid.New().String(), "node-to-stay": uuid.New().String()}
	for name, id := range ids {
		_, err := admin.Catalog().Register(&api.CatalogRegistration{
			Node: name, ID: id, Address: "192.0.2.1",
			Service: &api.AgentService{ID: name, Service: name},
			Check:   &api.AgentCheck{Node: name, CheckID: name, Name: name, Status: api.HealthPassing, ServiceID: name},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	anonymous := client(t, secured, "")
	secret := grant(t, admin, `node_prefix "node-to-" { policy = "write" }`)
	id := ids["node-to-go"]
	reader := grant(t, admin, `node_prefix "node-to-" { policy = "read" }`)
	if err := DeregisterNode(t.Context(), anonymous, id, "", reader); Classify(err) != retry.Permanent {
		t.Errorf("with a token that may only read: %v", err)
	}
	for range 2 { // the second finds none
		if err := DeregisterNode(t.Context(), anonymous, id, "", secret); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]bool{"node-to-go": false, "node-to-stay": true} {
		node, _, err := admin.Catalog().Node(name, nil)
		checks, _, checkErr := admin.Health().Checks(name, nil)
		if err != nil || checkErr != nil || (node != nil) != want || (len(checks) == 1) != want {
			t.Errorf("%s: %+v, checks %v, %v, %v; want it there: %t", name, node, checks, err, checkErr, want)
		}
	}
	if err := DeregisterNode(t.Context(), newClient(t, Options{Address: "127.0.0.1:1"}), id, "", secret); Classify(err) != retry.Retry {
		t.Errorf("nobody there: %v", err)
	}
}
