package registrar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// TestUnknownUpstreams asks a real server about upstreams that are there, misspelt, redirected and elsewhere.
func TestUnknownUpstreams(t *testing.T) {
	t.Parallel()
	server, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Require(t).Stop)
	consul := client(t, server, "")
	register := func(e *api.CatalogRegistration) error { _, err := consul.Catalog().Register(e, nil); return err }
	testkit.Eventually(t, "a service", func() bool {
		return register(&api.CatalogRegistration{Node: "n", Address: "10.0.0.1",
			Service: &api.AgentService{Service: "billing"}}) == nil
	})
	resolver := &api.ServiceResolverConfigEntry{Kind: api.ServiceResolver, Name: "invoices",
		Redirect: &api.ServiceResolverRedirect{Service: "billing"}}
	if _, _, err := consul.ConfigEntries().Set(resolver, nil); err != nil {
		t.Fatal(err)
	}
	w := workload.Workload{Name: "web", Proxy: workload.Proxy{Upstreams: []config.Upstream{
		{DestinationName: "billing"}, {DestinationName: "biling"}, {DestinationName: "invoices"},
		{DestinationName: "zzz"}, {DestinationName: "far", DestinationPeer: "b"},
		{DestinationName: "query", DestinationType: "prepared_query"},
	}}}
	got, err := registrar.UnknownUpstreams(t.Context(), consul, "", w)
	if err != nil {
		t.Fatal(err)
	}
	want := []registrar.UnknownUpstream{{Name: "biling", Near: "billing"}, {Name: "zzz"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown upstreams (-want +got):\n%s", diff)
	}
}
