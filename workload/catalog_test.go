package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// agentless is a configuration with consulServers.
func agentless(change func(*config.Config)) *config.Config {
	cfg := &config.Config{
		ConsulServers: &config.ConsulServers{Hosts: "consul.example"},
		Proxy:         &config.Proxy{PublicListenerPort: 20000},
	}
	change(cfg)
	return cfg
}

// located is a task with these addresses.
func located(addresses workload.Network) workload.Task {
	return workload.Task{
		TaskARN: fargateARN, Family: "Web", AvailabilityZone: "us-west-2b",
		Containers: []workload.Container{{Networks: []workload.Network{addresses}}},
	}
}

func ipv4() workload.Network { return workload.Network{IPv4Addresses: []string{"10.0.0.9"}} }

const (
	containerNotes = `Mirrors the ECS health check of the essential container "app".`
	aggregateNotes = "Passing while the proxy's container and all containers of healthSyncContainers are healthy in ECS."
)

func TestNewWithoutAnAgentKeepsTheNamesOf010(t *testing.T) {
	t.Parallel()
	cfg := agentless(func(cfg *config.Config) {
		cfg.Service = &config.Service{Port: 9090, Meta: map[string]string{"task-id": "mine", "team": "red"}}
		cfg.Proxy.LocalServiceAddress = "127.0.0.7"
		cfg.TransparentProxy.Enabled = true
		cfg.HealthSyncContainers = []string{"app", "consul-dataplane"}
	})
	w, err := workload.New(cfg, located(ipv4()), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	const id = "web-0f9de17a6465404e8b1b2356dc13c2f8"
	want := workload.Workload{
		TaskID: "0f9de17a6465404e8b1b2356dc13c2f8", TaskARN: fargateARN,
		Node: "arn:aws:ecs:us-west-2:111122223333:cluster/mesh", Address: "10.0.0.9",
		Locality: &workload.Locality{Region: "us-west-2", Zone: "us-west-2b"}, Transparent: true,
		Name: "web", ID: id, Port: 9090,
		Meta: map[string]string{"task-id": "0f9de17a6465404e8b1b2356dc13c2f8", "task-arn": fargateARN, "source": "consul-ecs", "team": "red"},
		SyncChecks: []workload.SyncCheck{
			{ID: id + "-app", Container: "app", Name: "Consul ECS health check synced", Notes: containerNotes, ServiceID: id},
			{ID: id + "-consul-dataplane", Container: "consul-dataplane", Name: "Consul dataplane readiness", Notes: aggregateNotes, ServiceID: id, Aggregate: true},
			{ID: id + "-sidecar-proxy-consul-dataplane", Container: "consul-dataplane", Name: "Consul dataplane readiness", Notes: aggregateNotes, ServiceID: id + "-sidecar-proxy", Aggregate: true},
		},
		Proxy: workload.Proxy{
			Name: "web-sidecar-proxy", ID: id + "-sidecar-proxy", Port: 20000, LocalServiceAddress: "127.0.0.7",
			ListenerCheck: "127.0.0.1:20000", HasConfig: true,
		},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGatewaysWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		address string
		port    int
		wan     *config.Address
	}{
		{"mesh-gateway", "10.1.1.1", 9443, &config.Address{Address: "198.51.100.7", Port: 8443}},
		{"terminating-gateway", "", 8443, nil},
		{"api-gateway", "", 8443, nil},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			cfg := agentless(func(cfg *config.Config) {
				cfg.Gateway = &config.Gateway{
					Kind: tt.kind, LANAddress: &config.Address{Address: "10.1.1.1", Port: 9443},
					WANAddress: &config.Address{Address: "198.51.100.7", Port: 8443},
				}
				cfg.TransparentProxy.Enabled = true
				cfg.HealthSyncContainers = []string{"app"}
			})
			w, err := workload.New(cfg, located(ipv4()), "us-west-2")
			if err != nil {
				t.Fatal(err)
			}
			const id = "web-0f9de17a6465404e8b1b2356dc13c2f8"
			checks := []workload.SyncCheck{{
				ID: id + "-consul-dataplane", Container: "consul-dataplane", Name: "Consul dataplane readiness",
				Notes: aggregateNotes, ServiceID: id, Aggregate: true,
			}}
			if diff := cmp.Diff(checks, w.SyncChecks); diff != "" {
				t.Errorf("checks -want +got:\n%s", diff)
			}
			if w.Gateway != tt.kind || w.Address != "10.0.0.9" || w.Transparent || w.Locality != nil {
				t.Errorf("workload = %+v", w)
			}
			p := w.Proxy
			if p.ID != id || p.Address != tt.address || p.Port != tt.port || !cmp.Equal(p.WAN, tt.wan) || (p.LAN != nil) != (tt.address != "") {
				t.Errorf("proxy = %+v", p)
			}
		})
	}
}

func TestAddressAndLocalityWithoutAnAgent(t *testing.T) {
	t.Parallel()
	cfg := agentless(func(*config.Config) {})
	for name, tt := range map[string]struct {
		network         workload.Network
		region, address string
		locality        *workload.Locality
	}{
		"no region":     {ipv4(), "", "10.0.0.9", nil},
		"IPv6 only":     {workload.Network{IPv6Addresses: []string{"fd00::9"}}, "", "fd00::9", nil},
		"IPv4 and IPv6": {workload.Network{IPv4Addresses: []string{"10.0.0.9"}, IPv6Addresses: []string{"fd00::9"}}, "eu-west-1", "10.0.0.9", &workload.Locality{Region: "eu-west-1", Zone: "us-west-2b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := workload.New(cfg, located(tt.network), tt.region)
			if err != nil {
				t.Fatal(err)
			}
			if w.Address != tt.address || !cmp.Equal(w.Locality, tt.locality) {
				t.Errorf("address %q, locality %+v", w.Address, w.Locality)
			}
		})
	}
	_, err := workload.New(cfg, located(workload.Network{}), "")
	if want := "describe workload: find task address: none of 1 containers in the metadata has one; the task needs network mode awsvpc"; err == nil || err.Error() != want {
		t.Errorf("no address: %v", err)
	}
}

// TestSessionCheckIsNoContainersCheck: a container may have any name that ECS takes.
func TestSessionCheckIsNoContainersCheck(t *testing.T) {
	t.Parallel()
	w, err := workload.New(agentless(func(cfg *config.Config) {
		cfg.HealthSyncContainers = []string{"session", "sidecar-proxy-session"}
	}), located(ipv4()), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.SyncChecks {
		if c.ID == workload.SessionCheckID(w.ID) || c.ID == workload.SessionCheckID(w.Proxy.ID) {
			t.Errorf("check %q of container %q is a session's", c.ID, c.Container)
		}
	}
}
