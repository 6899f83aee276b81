package registrar_test

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// TestDeregisterAtServers: with the token of a login, and no other instance.
func TestDeregisterAtServers(t *testing.T) {
	t.Parallel()
	admin := client(t, secured.Require(t), secured.Token)
	const node, name = "node-of-a-dead-agent", "forsaken"
	for _, id := range []string{name + "-1", name + "-2"} {
		for service, id := range map[string]string{name: id, name + "-sidecar-proxy": id + "-sidecar-proxy"} {
			_, err := admin.Catalog().Register(&api.CatalogRegistration{
				Node: node, Address: "192.0.2.1",
				Service: &api.AgentService{ID: id, Service: service},
				Check:   &api.AgentCheck{Node: node, CheckID: id, Name: id, Status: api.HealthPassing, ServiceID: id},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	w := workload.Workload{Name: name, ID: name + "-1",
		Proxy: workload.Proxy{Name: name + "-sidecar-proxy", ID: name + "-1-sidecar-proxy"}}
	anonymous := client(t, secured, "")
	blind := testkit.Grant(t, admin, `service "`+name+`" { policy = "read" }`)
	if err := registrar.DeregisterAtServers(t.Context(), anonymous, w,
		blind); consulutil.Classify(err) != retry.Permanent {
		t.Errorf("with a token that may not read nodes: %v", err)
	}
	reader := testkit.Grant(t, admin, `node_prefix "" { policy = "read" } service_prefix "" { policy = "read" }`)
	if err := registrar.DeregisterAtServers(t.Context(), anonymous, w,
		reader); consulutil.Classify(err) != retry.Permanent {
		t.Errorf("with a token that may only read: %v", err)
	}
	token, _, err := admin.ACL().TokenCreate(
		&api.ACLToken{ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: name}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds none
		if err := registrar.DeregisterAtServers(t.Context(), anonymous, w, token.SecretID); err != nil {
			t.Error(err)
		}
	}
	left, _, err := admin.Catalog().NodeServiceList(node, nil)
	if err != nil || len(left.Services) != 2 {
		t.Fatalf("left: %+v, %v", left, err)
	}
	for _, s := range left.Services {
		if s.ID != name+"-2" && s.ID != name+"-2-sidecar-proxy" {
			t.Errorf("%s is left", s.ID)
		}
	}
}
