package workload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// agentless returns a configuration with consulServers.
func agentless(change func(*config.Config)) *config.Config {
	cfg := &config.Config{
		ConsulServers: &config.ConsulServers{Hosts: "consul.example"},
		Proxy:         &config.Proxy{PublicListenerPort: 20000},
	}
	change(cfg)
	return cfg
}

// located returns a task with these addresses.
func located(addresses workload.Network) workload.Task {
	return workload.Task{
		TaskARN: fargateARN, Family: "Web", AvailabilityZone: "us-west-2b",
		Containers: []workload.Container{{Networks: []workload.Network{addresses}}},
	}
}

func ipv4() workload.Network { return workload.Network{IPv4Addresses: []string{"10.0.0.9"}} }

const (
	containerNotes = `Mirrors the ECS health check of the essential container "app".`
	aggregateNotes = "Passing while the proxy's container and all containers of healthSyncContainers are " +
		"healthy in ECS."
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
		Locality: workload.Locality{Region: "us-west-2", Zone: "us-west-2b"}, Transparent: true,
		Name: "web", ID: id, Port: 9090,
		Meta: map[string]string{"task-id": "0f9de17a6465404e8b1b2356dc13c2f8", "task-arn": fargateARN,
			"source": "consul-ecs", "team": "red"},
		SyncChecks: []workload.SyncCheck{
			{ID: id + "-app", Container: "app", Name: "Consul ECS health check synced", Notes: containerNotes,
				ServiceID: id},
			{ID: id + "-consul-dataplane", Container: "consul-dataplane", Name: "Consul dataplane readiness",
				Notes: aggregateNotes, ServiceID: id, Aggregate: true},
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
			if diff := cmp.Diff([]any{tt.kind, "10.0.0.9", false}, []any{w.Gateway, w.Address, w.Transparent}); diff != "" {
				t.Errorf("kind, address and transparent (-want +got):\n%s", diff)
			}
			p := w.Proxy
			want := []any{id, tt.address, tt.port, tt.wan, tt.address != ""}
			if diff := cmp.Diff(want, []any{p.ID, p.Address, p.Port, p.WAN, p.LAN != nil}); diff != "" {
				t.Errorf("proxy's id, address, port, WAN and whether it has a LAN (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocalityIsThatOfTheTask(t *testing.T) {
	t.Parallel()
	gateway := &config.Gateway{Kind: "terminating-gateway"}
	for name, cfg := range map[string]*config.Config{
		"service without an agent": agentless(func(*config.Config) {}),
		"gateway without an agent": agentless(func(cfg *config.Config) { cfg.Gateway = gateway }),
		"service with an agent":    in(t, ``),
		"gateway with an agent":    in(t, `,"gateway":{"kind":"mesh-gateway"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for region, want := range map[string]string{"": "us-west-2", "eu-west-1": "eu-west-1"} {
				w, err := workload.New(cfg, located(ipv4()), region)
				if err != nil {
					t.Fatal(err)
				}
				if want := (workload.Locality{Region: want, Zone: "us-west-2b"}); w.Locality != want {
					t.Errorf("AWS_REGION %q: %+v, want %+v", region, w.Locality, want)
				}
			}
		})
	}
}

// TestNetworkModesWithoutAMesh: a task in one of them registered an address that only its host reaches.
func TestNetworkModesWithoutAMesh(t *testing.T) {
	t.Parallel()
	kinds := map[string]*config.Config{
		"service without an agent": agentless(func(*config.Config) {}),
		"gateway without an agent": agentless(
			func(cfg *config.Config) { cfg.Gateway = &config.Gateway{Kind: config.KindMeshGateway} }),
		"service with an agent": in(t, ``),
		"gateway with an agent": in(t, `,"gateway":{"kind":"mesh-gateway"}`),
	}
	for _, tt := range []struct {
		mode, address string
		takenWith     string // the generation that takes it
	}{
		{"", "10.0.0.9", "agent"},
		{"awsvpc", "10.0.0.9", "agent"},
		{"host", "", "with an agent"},
		{"bridge", "172.17.0.3", "none"},
		{"none", "", "none"},
		{"default", "172.17.0.3", "none"},
		{"a-network-of-docker", "172.18.0.2", "none"},
	} {
		for kind, cfg := range kinds {
			t.Run(tt.mode+" "+kind, func(t *testing.T) {
				t.Parallel()
				task := located(workload.Network{NetworkMode: tt.mode, IPv4Addresses: []string{tt.address}})
				_, err := workload.New(cfg, task, "")
				if strings.Contains(kind, tt.takenWith) {
					if err != nil {
						t.Error(err)
					}
					return
				}
				want := fmt.Sprintf("describe workload: the task has network mode %q: ", tt.mode)
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
				if errors.Is(err, workload.ErrIncomplete) {
					t.Error("the mode is waited for")
				}
			})
		}
	}
}

// TestNetworkModeIsThatOfTheTasksContainers: not of those that AWS adds.
func TestNetworkModeIsThatOfTheTasksContainers(t *testing.T) {
	t.Parallel()
	in := func(name, mode string) workload.Container {
		return workload.Container{Name: name,
			Networks: []workload.Network{{NetworkMode: mode, IPv4Addresses: []string{"10.0.0.9"}}}}
	}
	for name, tt := range map[string]struct {
		containers []workload.Container
		refused    bool
	}{
		"the pause container": {[]workload.Container{in("~internal~ecs~pause", "none"), in("app", "awsvpc")},
			false},
		"one without a network":   {[]workload.Container{{Name: "app"}, in("web", "awsvpc")}, false},
		"the second is in bridge": {[]workload.Container{{Name: "app"}, in("web", "bridge")}, true},
		"one of several":          {[]workload.Container{in("app", "awsvpc"), in("web", "bridge")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := workload.Task{Containers: tt.containers}.NodeIP()
			if refused := err != nil; refused != tt.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestIncompleteMetadata may be complete a moment later, and are told apart from wrong ones.
func TestIncompleteMetadata(t *testing.T) {
	t.Parallel()
	whole := func(change func(*workload.Task)) workload.Task {
		task := located(workload.Network{NetworkMode: "awsvpc", IPv4Addresses: []string{"10.0.0.9"}})
		change(&task)
		return task
	}
	noNetwork := func(t *workload.Task) { t.Containers[0].Networks = nil }
	noAddress := func(t *workload.Task) { t.Containers[0].Networks[0].IPv4Addresses = []string{""} }
	servers := agentless(func(*config.Config) {})
	gateway := in(t, `,"gateway":{"kind":"mesh-gateway"}`)
	for name, tt := range map[string]struct {
		cfg  *config.Config
		task workload.Task
		want string
	}{
		"no networks": {servers, whole(noNetwork), "no container has an IP address"},
		"no address":  {servers, whole(noAddress), "no container has an IP address"},
		"no containers": {servers, whole(func(t *workload.Task) { t.Containers = nil }),
			"no container has an IP address"},
		"gateway without networks": {gateway, whole(noNetwork), "no container has an IP address"},
		"gateway without address":  {gateway, whole(noAddress), "no container has an IP address"},
		"no family":                {servers, whole(func(t *workload.Task) { t.Family = "" }), "no family"},
		"no cluster": {servers,
			whole(func(t *workload.Task) { t.TaskARN = "arn:aws:ecs:us-west-2:1:task/id" }), "no cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := workload.New(tt.cfg, tt.task, "")
			if !errors.Is(err, workload.ErrIncomplete) {
				t.Fatalf("got %v", err)
			}
			if want := "describe workload: the task metadata are incomplete: " + tt.want; err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
		})
	}
	if _, err := workload.New(in(t, ``), whole(noNetwork), ""); err != nil {
		t.Errorf("a service with an agent needs no address: %v", err)
	}
}

func TestAddressWithoutAnAgent(t *testing.T) {
	t.Parallel()
	cfg := agentless(func(*config.Config) {})
	for name, tt := range map[string]struct {
		network workload.Network
		address string
	}{
		"IPv4":      {ipv4(), "10.0.0.9"},
		"IPv6 only": {workload.Network{IPv6Addresses: []string{"fd00::9"}}, "fd00::9"},
		"IPv4 and IPv6": {workload.Network{IPv4Addresses: []string{"10.0.0.9"}, IPv6Addresses: []string{"fd00::9"}},
			"10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := workload.New(cfg, located(tt.network), "")
			if err != nil {
				t.Fatal(err)
			}
			if w.Address != tt.address {
				t.Errorf("address %q, want %q", w.Address, tt.address)
			}
		})
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
