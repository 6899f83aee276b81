package meshinit_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// Configurations of version 0.10 and what they register, with a real server.
func TestAgentlessScenarios(t *testing.T) {
	t.Parallel()
	const head = `{"bootstrapDir":"DIR","consulServers":SERVERS,`
	for _, tt := range []struct {
		name, doc string
		// service is the name; empty for a gateway, which is named web.
		service string
		check   func(t *testing.T, service, proxy *api.AgentService)
	}{
		{"no service and no proxy", head + `"transparentProxy":{"enabled":false}}`,
			"web", func(t *testing.T, service, proxy *api.AgentService) {
				testkit.Equal(t, "ports", []int{service.Port, proxy.Port, proxy.Proxy.LocalServicePort},
					[]int{0, 20000, 0})
			}},
		{"proxy is null", head + `"transparentProxy":{"enabled":false},"service":{"port":9090},"proxy":null}`,
			"web", func(t *testing.T, service, proxy *api.AgentService) {
				if service.Port != 9090 || proxy.Port != 20000 {
					t.Errorf("ports = %d, %d", service.Port, proxy.Port)
				}
			}},
		{"proxy", head + `"transparentProxy":{"enabled":false},"service":{"name":"api","port":9090},
			"proxy":{"publicListenerPort":21000,"localServiceAddress":"127.0.0.9","upstreams":[{"destinationName":"db","localBindPort":1234}]}}`, "api", func(t *testing.T, _, proxy *api.AgentService) {
			p := proxy.Proxy
			testkit.Equal(t, "ports", []int{proxy.Port, p.LocalServicePort}, []int{21000, 9090})
			testkit.Equal(t, "proxy", []string{p.LocalServiceAddress, p.DestinationServiceName, string(p.Mode)},
				[]string{"127.0.0.9", "api", ""})
			if len(p.Upstreams) != 1 {
				t.Fatalf("upstreams %+v, want one", p.Upstreams)
			}
			testkit.Equal(t, "destination", p.Upstreams[0].DestinationName, "db")
			testkit.Equal(t, "port of the upstream", p.Upstreams[0].LocalBindPort, 1234)
		}},
		{"tags, meta and weights",
			head +
				`"transparentProxy":{"enabled":false},"service":{"name":"api","port":1,"tags":["a"],"meta":{"x":"y"},` +
				`"weights":{"passing":3,"warning":2},"enableTagOverride":true}}`,
			"api", func(t *testing.T, service, proxy *api.AgentService) {
				for _, s := range []*api.AgentService{service, proxy} {
					testkit.Equal(t, "tags", s.Tags, []string{"a"})
					testkit.Equal(t, "meta", s.Meta["x"], "y")
					testkit.Equal(t, "weights", s.Weights, api.AgentWeights{Passing: 3, Warning: 2})
					testkit.Equal(t, "override of tags", s.EnableTagOverride, true)
				}
			}},
		{"transparent proxy", head + `"service":{"name":"api","port":9090}}`,
			"api", func(t *testing.T, service, proxy *api.AgentService) {
				want := api.ServiceAddress{Address: "127.0.0.1", Port: 9090}
				testkit.Equal(t, "mode", proxy.Proxy.Mode, "transparent")
				testkit.Equal(t, "virtual address of the service", service.TaggedAddresses["virtual"], want)
				testkit.Equal(t, "virtual address of the proxy", proxy.TaggedAddresses["virtual"], want)
			}},
		{"mesh gateway",
			head +
				`"gateway":{"kind":"mesh-gateway","lanAddress":{"address":"10.0.0.1","port":8444},` +
				`"wanAddress":{"address":"203.0.113.9"}}}`, "", func(t *testing.T, _, gateway *api.AgentService) {
				a := gateway.TaggedAddresses
				testkit.Equal(t, "address", gateway.Address, "10.0.0.1")
				testkit.Equal(t, "ports", []int{gateway.Port, a["lan"].Port, a["wan"].Port}, []int{8444, 8444, 8443})
			}},
		{"terminating gateway",
			head + `"gateway":{"kind":"terminating-gateway","lanAddress":{"address":"10.0.0.1","port":8444}}}`,
			"", isPlainGateway(api.ServiceKindTerminatingGateway)},
		{"API gateway", head + `"healthSyncContainers":["app"],"gateway":{"kind":"api-gateway"}}`,
			"", isPlainGateway(api.ServiceKindAPIGateway)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, open, tt.doc)
			s.mustRun()
			var service *api.AgentService
			proxyName, proxyID := "web", "web-"+s.taskID
			if tt.service != "" {
				found := s.instance(tt.service, tt.service+"-"+s.taskID)
				s.wantFrame(found)
				service = found.Service
				proxyName, proxyID = tt.service+"-sidecar-proxy", service.ID+"-sidecar-proxy"
			}
			proxy := s.instance(proxyName, proxyID)
			s.wantFrame(proxy)
			tt.check(t, service, proxy.Service)
			s.wantFiles(workload.FileDataplane)
			s.wantMode(workload.FileDataplane, 0o444)
		})
	}
}

func isPlainGateway(kind api.ServiceKind) func(*testing.T, *api.AgentService, *api.AgentService) {
	return func(t *testing.T, _, gateway *api.AgentService) {
		testkit.Equal(t, "kind", gateway.Kind, kind)
		testkit.Equal(t, "address", api.ServiceAddress{Address: gateway.Address, Port: gateway.Port},
			api.ServiceAddress{Address: "127.0.0.1", Port: 8443})
		testkit.Equal(t, "tagged addresses", len(gateway.TaggedAddresses), 0)
	}
}

// wantFrame checks what all registrations have in common.
func (s *fixture) wantFrame(e *api.ServiceEntry) {
	s.t.Helper()
	if e.Node.Node != s.node() || e.Node.Meta["synthetic-node"] != "true" {
		s.t.Errorf("node = %+v", e.Node)
	}
	want := map[string]string{"task-id": s.taskID,
		"task-arn": "arn:aws:ecs:us-west-2:123456789012:task/prod/" + s.taskID, "source": "consul-ecs",
		"mesh-init-version": "v9.8.7", "envoy-version": "1.40.0"}
	for key, value := range want {
		if e.Service.Meta[key] != value {
			s.t.Errorf("meta %s = %q, want %q", key, e.Service.Meta[key], value)
		}
	}
	s.wantLocality(e)
}

// wantLocality checks that the region, which AWS_REGION does not name, is that of the task ARN.
func (s *fixture) wantLocality(e *api.ServiceEntry) {
	s.t.Helper()
	if diff := cmp.Diff(&api.Locality{Region: "us-west-2", Zone: "us-west-2b"}, e.Service.Locality); diff != "" {
		s.t.Errorf("locality of %s -want +got:\n%s", e.Service.ID, diff)
	}
}

// TestMetadataThatAreIncompleteAreReadAgain: the endpoint may list a container before its network.
func TestMetadataThatAreIncompleteAreReadAgain(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, serversDoc)
	const networks = `"Networks":[{"IPv4Addresses":["127.0.0.1"]}]`
	answers := []string{
		strings.Replace(s.task(), ","+networks, "", 1),
		strings.Replace(s.task(), networks, `"Networks":[{"NetworkMode":"awsvpc","IPv4Addresses":[""]}]`, 1),
	}
	read := s.deps.Metadata.Task
	asked := 0
	s.deps.Metadata = metadataFunc(func(ctx context.Context) (workload.Task, error) {
		asked++
		if asked <= len(answers) {
			return workload.ParseTask([]byte(answers[asked-1]))
		}
		return read(ctx)
	})
	s.mustRun()
	s.wantFrame(s.instance("web", "web-"+s.taskID))
	if want := len(answers) + 1; asked != want {
		t.Errorf("the metadata were read %d times, want %d", asked, want)
	}
}

type metadataFunc func(context.Context) (workload.Task, error)

func (f metadataFunc) Task(ctx context.Context) (workload.Task, error) { return f(ctx) }

func TestAgentlessChecksAreCriticalAtFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open,
		strings.Replace(serversDoc, `"service"`, `"healthSyncContainers":["app","side"],"service"`, 1))
	s.mustRun()
	type check struct{ ID, Name, Type, Status string }
	got := map[string][]check{}
	for name, id := range map[string]string{"web": "web-" + s.taskID,
		"web-sidecar-proxy": "web-" + s.taskID + "-sidecar-proxy"} {
		for _, c := range s.instance(name, id).Checks {
			got[name] = append(got[name],
				check{strings.Replace(c.CheckID, s.taskID, "TASK", 1), c.Name, c.Type, c.Status})
		}
	}
	const kind, synced, ready = "consul-ecs-health-check", "Consul ECS health check synced",
		"Consul dataplane readiness"
	want := map[string][]check{
		"web": {
			{"web-TASK-app", synced, kind, "critical"},
			{"web-TASK-consul-dataplane", ready, kind, "critical"},
			{"web-TASK-side", synced, kind, "critical"},
		},
		"web-sidecar-proxy": {{"web-TASK-sidecar-proxy-consul-dataplane", ready, kind, "critical"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestAgentlessLoginFeedsConsulDataplane(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, serversLoginDoc)
	s.mustRun()
	secret := string(s.file(workload.FileServiceToken))
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Fatalf("tokens = %v, want one", tokens)
	}
	var got struct {
		Consul struct {
			Addresses   string
			GRPCPort    int
			Credentials struct {
				Type   string
				Static struct{ Token string }
			}
		}
		Proxy struct{ NodeName, ID string }
		Envoy struct{ ReadyBindPort int }
	}
	if err := json.Unmarshal(s.file(workload.FileDataplane), &got); err != nil {
		t.Fatal(err)
	}
	if c := got.Consul; c.Addresses != "127.0.0.1" || c.GRPCPort != 8502 || c.Credentials.Type != "static" ||
		c.Credentials.Static.Token != secret {
		t.Errorf("consul = %+v", c)
	}
	if got.Proxy.NodeName != s.node() || got.Proxy.ID != "web-"+s.taskID+"-sidecar-proxy" ||
		got.Envoy.ReadyBindPort != 22000 {
		t.Errorf("proxy = %+v, envoy = %+v", got.Proxy, got.Envoy)
	}
	s.wantFiles(workload.FileDataplane, workload.FileServiceToken)
	s.wantMode(workload.FileDataplane, 0o640)
	s.wantMode(workload.FileServiceToken, 0o640)
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log has the secret")
	}
}

func TestAgentlessLoginOfTheThreeGateways(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mesh-gateway", "terminating-gateway", "api-gateway"} {
		s := newFixture(t, secured,
			`{"bootstrapDir":"DIR","consulServers":SERVERS,"consulLogin":{"enabled":true,"method":"`+
				trusting+`"},"gateway":{"kind":"`+kind+`"}}`)
		s.mustRun()
		if got := s.requests.count("PUT /v1/catalog/register"); got != 1 {
			t.Errorf("%s: %d registrations, want 1", kind, got)
		}
		found := s.instance("web", "web-"+s.taskID)
		if len(found.Checks) != 1 || found.Checks[0].CheckID != "web-"+s.taskID+"-consul-dataplane" ||
			found.Checks[0].Status != "critical" {
			t.Errorf("%s: checks = %+v", kind, found.Checks)
		}
	}
}

// In direct mode the relay presents the token, so that the bootstrap has none and every
// user may read it.
func TestAgentlessDirectModeLeavesTheTokenToTheRelay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, direct(serversLoginDoc))
	s.mustRun()
	secret := string(s.file(workload.FileServiceToken))
	for _, name := range []string{workload.FileBootstrap, workload.FileRelay} {
		if strings.Contains(string(s.file(name)), secret) {
			t.Errorf("%s has the token", name)
		}
		s.wantMode(name, 0o444)
	}
	relay, err := bootstrap.ParseRelay(s.file(workload.FileRelay))
	if err != nil || relay.TokenFile != s.dir+"/service-token" || relay.Servers.Hosts != "127.0.0.1" ||
		relay.Servers.GRPC.Port != 8502 {
		t.Errorf("relay = %+v, %v", relay, err)
	}
	node := s.bootstrap()["node"].(map[string]any)
	if node["id"] != "web-"+s.taskID+"-sidecar-proxy" || node["metadata"].(map[string]any)["node_name"] != s.node() {
		t.Errorf("node = %v", node)
	}
	s.wantFiles(workload.FileBootstrap, workload.FileServiceToken, workload.FileRelay)
	s.wantMode(workload.FileServiceToken, 0o640)
}

// A token of the environment is in no separate file.
func TestAgentlessTokenOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for doc, file := range map[string]string{serversDoc: workload.FileDataplane,
		direct(serversDoc): workload.FileRelay} {
		s := newFixture(t, open, doc)
		consul := s.deps.Consul
		s.deps.Consul = func() (meshinit.Consul, error) {
			c, err := consul()
			c.Token = "from-the-environment"
			return c, err
		}
		s.mustRun()
		if !strings.Contains(string(s.file(file)), "from-the-environment") {
			t.Errorf("%s has no token", file)
		}
		s.wantMode(file, 0o640)
	}
}

func TestAgentlessCAOfGRPCAndHostsGetFiles(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, serversDoc)
	s.options.Proxy = meshinit.ServersProxy{
		Config: s.options.Config,
		GRPC:   consulutil.ServerTLS{Enabled: true, CAPEM: testkit.OtherCA, ServerName: "server.dc1.consul"},
		Hosts:  []string{"127.0.1.1 api", "127.0.1.2 db"},
	}
	s.mustRun()
	s.wantFiles(workload.FileDataplane, workload.FileGRPCCACert, workload.FileHosts)
	s.wantMode(workload.FileGRPCCACert, 0o444)
	s.wantMode(workload.FileHosts, 0o444)
	if got := string(s.file(workload.FileGRPCCACert)); got != testkit.OtherCA {
		t.Errorf("CA = %q", got)
	}
	if got := string(s.file(workload.FileHosts)); got != "127.0.1.1 api\n127.0.1.2 db\n" {
		t.Errorf("hosts = %q", got)
	}
	const want = `"tls":{"caCertsPath":"DIR/consul-grpc-ca-cert.pem","disabled":false,` +
		`"serverName":"server.dc1.consul","tlsServerName":"server.dc1.consul"}`
	if got := string(s.file(workload.FileDataplane)); !strings.Contains(got, strings.Replace(want, "DIR", s.dir, 1)) {
		t.Errorf("no %s in\n%s", want, got)
	}
}

// A host's volume may have the files of a task in another mode.
func TestFilesOfAnotherModeAreRemoved(t *testing.T) {
	t.Parallel()
	modes := []struct {
		doc   string
		files []string
	}{
		{direct(serversDoc), []string{workload.FileBootstrap, workload.FileRelay}},
		{serversDoc, []string{workload.FileDataplane}},
		{`{"bootstrapDir":"DIR","service":{"name":"web","port":9090}}`, []string{workload.FileBootstrap}},
	}
	for i, before := range modes {
		after := modes[(i+1)%len(modes)]
		s := newFixture(t, open, before.doc)
		s.mustRun()
		s.wantFiles(before.files...)
		next := newFixture(t, open, strings.Replace(after.doc, "DIR", s.dir, 1))
		next.dir = s.dir
		next.mustRun()
		next.wantFiles(after.files...)
	}
}

func TestAgentlessLoginGoesToTheDatacenter(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured,
		strings.Replace(serversLoginDoc, `"enabled":true`, `"enabled":true,"datacenter":"dc1"`, 1))
	s.mustRun()
	if got := s.requests.query("POST /v1/acl/login").Get("dc"); got != "dc1" {
		t.Errorf("datacenter of the login = %q", got)
	}
}

// TestAgentlessRequests: few reads, and one write of each registration.
func TestAgentlessRequests(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, serversLoginDoc)
	s.mustRun()
	want := []string{
		"GET /v1/status/leader", "POST /v1/acl/login", "GET /v1/acl/token/self", "PUT /v1/txn", // reads the checks
		"PUT /v1/catalog/register", "PUT /v1/catalog/register", "GET /v1/health/service/web-sidecar-proxy",
	}
	if got := s.requests.list(); !slices.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}
