package meshinit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// loginDoc is a configuration with a login; the role's tag says "web".
const loginDoc = `{"bootstrapDir":"DIR","consulHTTPAddr":"ADDR","consulLogin":{"enabled":true,"method":"` + trusting + `"},
	"service":{"name":"web","port":9090},"proxy":{}}`

// Configurations of version 0.6 and what they register, with a real agent.
func TestScenarios(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, doc string
		// service is the name; empty for a gateway.
		service, proxy string
		check          func(t *testing.T, s *fixture, service, proxy *api.AgentService)
	}{
		{"default name is the lower-cased family", `{"bootstrapDir":"DIR"}`,
			"web", "web-sidecar-proxy", func(t *testing.T, _ *fixture, service, proxy *api.AgentService) {
				if service.Port != 0 || proxy.Port != 20000 {
					t.Errorf("ports = %d, %d", service.Port, proxy.Port)
				}
			}},
		{"port and listener", `{"bootstrapDir":"DIR","service":{"port":9090},"proxy":{"publicListenerPort":21000}}`,
			"web", "web-sidecar-proxy", func(t *testing.T, _ *fixture, service, proxy *api.AgentService) {
				testkit.Equal(t, "ports", []int{service.Port, proxy.Port, proxy.Proxy.LocalServicePort},
					[]int{9090, 21000, 9090})
			}},
		{"two upstreams",
			`{"bootstrapDir":"DIR","proxy":{"upstreams":[{"destinationName":"a","localBindPort":1234},` +
				`{"destinationName":"b","localBindPort":1235}]}}`, "web",
			"web-sidecar-proxy", func(t *testing.T, _ *fixture, _, proxy *api.AgentService) {
				var got []string
				for _, u := range proxy.Proxy.Upstreams {
					got = append(got, fmt.Sprint(u.DestinationName, " ", u.LocalBindPort))
				}
				testkit.Equal(t, "upstreams", got, []string{"a 1234", "b 1235"})
			}},
		{"native checks", `{"bootstrapDir":"DIR","service":{"name":"checked","port":1,"checks":[
			{"checkId":"TASK-h","name":"h","http":"http://127.0.0.1:1","interval":"30s"},{"checkId":"TASK-t","name":"t","tcp":"127.0.0.1:1","interval":"30s"},
			{"checkId":"TASK-g","name":"g","grpc":"127.0.0.1:1","interval":"30s"},{"checkId":"TASK-u","name":"u","udp":"127.0.0.1:1","interval":"30s"}]}}`, "checked", "checked-sidecar-proxy", func(t *testing.T, s *fixture, service, _ *api.AgentService) {
			checks, err := s.admin().Agent().ChecksWithFilter(fmt.Sprintf("ServiceID==%q", service.ID))
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"TASK-h", "TASK-t", "TASK-g", "TASK-u"} {
				if c := checks[id]; c == nil || c.Status != "critical" {
					t.Errorf("check %s = %+v", id, c)
				}
			}
		}},
		{"synced checks",
			`{"bootstrapDir":"DIR","service":{"name":"synced","port":1},"healthSyncContainers":["app","side"]}`,
			"synced", "synced-sidecar-proxy", func(t *testing.T, s *fixture, service, _ *api.AgentService) {
				checks, err := s.admin().Agent().ChecksWithFilter(fmt.Sprintf("ServiceID==%q", service.ID))
				if err != nil {
					t.Fatal(err)
				}
				for _, container := range []string{"app", "side"} {
					id := "synced-" + s.taskID + "-" + container + "-consul-ecs"
					c := checks[id]
					if c == nil {
						t.Fatalf("no check %s", id)
					}
					testkit.Equal(t, "check "+id, []string{c.Status, c.Type, c.Name},
						[]string{"critical", "ttl", "consul ecs synced"})
				}
			}},
		{"tags and meta",
			`{"bootstrapDir":"DIR","service":{"name":"tagged","port":1,"tags":["a","b"],"meta":{"x":"y"}}}`,
			"tagged", "tagged-sidecar-proxy", func(t *testing.T, s *fixture, service, proxy *api.AgentService) {
				for _, r := range []*api.AgentService{service, proxy} {
					if !slices.Equal(r.Tags, []string{"a", "b"}) {
						t.Errorf("tags = %v", r.Tags)
					}
					testkit.Equal(t, "meta", []string{r.Meta["task-id"], r.Meta["source"], r.Meta["x"],
						r.Meta["mesh-init-version"], r.Meta["envoy-version"]},
						[]string{s.taskID, "consul-ecs", "y", "v9.8.7", "1.40.0"})
					if got := r.Meta["task-arn"]; !strings.HasSuffix(got, ":task/prod/"+s.taskID) {
						t.Errorf("task-arn of the meta %q, want that of task %s", got, s.taskID)
					}
				}
			}},
		{"gateway", `{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway"}}`,
			"", "web", func(t *testing.T, _ *fixture, _, proxy *api.AgentService) {
				if proxy.Port != 8443 || len(proxy.TaggedAddresses) != 0 {
					t.Errorf("gateway = %+v", proxy)
				}
			}},
		{"gateway with LAN port",
			`{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway","name":"gw","lanAddress":{"port":8444}}}`,
			"", "gw", func(t *testing.T, _ *fixture, _, proxy *api.AgentService) {
				if proxy.Port != 8444 || len(proxy.TaggedAddresses) != 0 {
					t.Errorf("gateway = %+v", proxy)
				}
			}},
		{"gateway with WAN address only",
			`{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway","name":"gw","lanAddress":{"port":8444},` +
				`"wanAddress":{"address":"203.0.113.9"}}}`, "", "gw",
			func(t *testing.T, _ *fixture, _, proxy *api.AgentService) {
				// The WAN port does not follow the LAN port.
				testkit.Equal(t, "address", api.ServiceAddress{Address: proxy.Address, Port: proxy.Port},
					api.ServiceAddress{Port: 8444})
				testkit.Equal(t, "WAN address", proxy.TaggedAddresses["wan"],
					api.ServiceAddress{Address: "203.0.113.9", Port: 8443})
				if _, ok := proxy.TaggedAddresses["lan"]; ok {
					t.Errorf("gateway has a LAN address: %+v", proxy)
				}
			}},
		{"gateway with addresses",
			`{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway","name":"gw","lanAddress":{"address":"10.0.0.1",` +
				`"port":8444},"wanAddress":{"address":"203.0.113.9"}}}`, "",
			"gw", func(t *testing.T, _ *fixture, _, proxy *api.AgentService) {
				a := proxy.TaggedAddresses
				testkit.Equal(t, "address", proxy.Address, "10.0.0.1")
				testkit.Equal(t, "LAN port", a["lan"].Port, 8444)
				testkit.Equal(t, "WAN address", a["wan"], api.ServiceAddress{Address: "203.0.113.9", Port: 8443})
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, open, tt.doc)
			s.mustRun()
			var service *api.AgentService
			proxyID := tt.proxy + "-" + s.taskID
			if tt.service != "" {
				service = s.service(tt.service + "-" + s.taskID)
				proxyID = tt.service + "-" + s.taskID + "-sidecar-proxy"
			}
			proxy := s.service(proxyID)
			if proxy.Service != tt.proxy {
				t.Errorf("proxy name = %s, want %s", proxy.Service, tt.proxy)
			}
			tt.check(t, s, service, proxy)
			if diff := cmp.Diff(&api.Locality{Region: "us-west-2", Zone: "us-west-2b"}, proxy.Locality); diff != "" {
				t.Errorf("locality -want +got:\n%s", diff)
			}
			node := s.bootstrap()["node"].(map[string]any)
			if node["id"] != proxyID {
				t.Errorf("bootstrap is for %v, want %s", node["id"], proxyID)
			}
			s.wantMode(workload.FileBootstrap, 0o444)
			s.wantMode(workload.FileBinary, 0o755)
			if _, err := os.Stat(filepath.Join(s.dir, workload.FileServiceToken)); err == nil {
				t.Error("there is a token without a login")
			}
		})
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, strings.Replace(loginDoc, `"enabled":true`, `"enabled":true,"meta":{"team":"x"}`, 1))
	s.mustRun()
	secret := string(s.file(workload.FileServiceToken))
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Fatalf("tokens = %v, want one", tokens)
	}
	token, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	want := `token created via login: {"consul.hashicorp.com/cluster":"arn:aws:ecs:us-west-2:123456789012:cluster/prod","consul.hashicorp.com/renewed":"true","consul.hashicorp.com/task-id":"` + s.taskID + `","team":"x"}`
	if token.Description != want {
		t.Errorf("description = %s\nwant %s", token.Description, want)
	}
	if !strings.Contains(string(s.file(workload.FileBootstrap)), secret) {
		t.Error("the bootstrap has no token")
	}
	s.wantMode(workload.FileServiceToken, 0o640)
	s.wantMode(workload.FileBootstrap, 0o640)
	if log := s.log.String(); strings.Contains(log, secret) || !strings.Contains(log, "accessor_id="+token.AccessorID) {
		t.Errorf("log has the secret or not the accessor:\n%s", log)
	}
}

func TestCompatModes(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.options.Compat = true
	s.mustRun()
	s.wantMode(workload.FileServiceToken, 0o644)
	s.wantMode(workload.FileBootstrap, 0o444)
}

// TestGatewayLogin: a gateway has one registration and needs its own identity.
func TestGatewayLogin(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured,
		`{"bootstrapDir":"DIR","consulHTTPAddr":"ADDR","consulLogin":{"enabled":true,"method":"`+
			trusting+`"},"gateway":{"kind":"mesh-gateway","name":"web"}}`)
	s.mustRun()
	if got := s.requests.count("PUT /v1/agent/service/register"); got != 1 {
		t.Errorf("%d registrations, want 1", got)
	}
}

// TestRequests: what a start costs, in order, and in time of our own.
func TestRequests(t *testing.T) {
	s := newFixture(t, open, `{"bootstrapDir":"DIR","service":{"name":"web","port":9090}}`)
	s.mustRun()
	want := []string{"GET /v1/status/leader", "PUT /v1/agent/service/register",
		"PUT /v1/agent/service/register", "GET /v1/agent/service/web-" + s.taskID + "-sidecar-proxy"}
	if got := s.requests.list(); !slices.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
	s = newFixture(t, secured, loginDoc)
	calls := len(aws.Actions())
	start := time.Now()
	s.mustRun()
	t.Logf("with login: %s", time.Since(start))
	want = slices.Concat(
		[]string{"GET /v1/status/leader", "POST /v1/acl/login", "GET /v1/acl/token/self"},
		want[1:3],
		[]string{"GET /v1/agent/service/web-" + s.taskID + "-sidecar-proxy"},
	)
	if got := s.requests.list(); !slices.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
	// Ours is the first; the others are Consul's.
	if got := aws.Actions()[calls:]; !slices.Equal(got, []string{"credentials", "GetCallerIdentity", "GetRole"}) {
		t.Errorf("requests to AWS = %v", got)
	}
}

func TestReadyListenerIsInTheBootstrap(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, `{"bootstrapDir":"DIR","service":{"name":"web","port":80}}`)
	s.options.Proxy = meshinit.AgentProxy{ReadyBind: "127.0.0.1:22000"}
	s.mustRun()
	if text := string(s.file(workload.FileBootstrap)); !strings.Contains(text, "envoy_ready_listener") ||
		!strings.Contains(text, "22000") {
		t.Errorf("no ready listener in\n%s", text)
	}
}

// TestNoProxyBlock: 0.6 panicked after the login.
func TestNoProxyBlock(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, strings.Replace(loginDoc, `,"proxy":{}`, "", 1))
	s.mustRun()
}

// TestGatewayNameIsLowerCased: the family is "Web".
func TestGatewayNameIsLowerCased(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, `{"bootstrapDir":"DIR","gateway":{"kind":"mesh-gateway"}}`)
	s.mustRun()
	if got := s.service("web-" + s.taskID).Service; got != "web" {
		t.Errorf("gateway = %s", got)
	}
}

// TestClusterARN: the metadata of EC2 has the short cluster name.
func TestClusterARN(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc) // its task says "Cluster":"prod"
	s.mustRun()
	token, _, err := s.admin().ACL().TokenReadSelf(&api.QueryOptions{Token: string(s.file(workload.FileServiceToken))})
	if err != nil || !strings.Contains(token.Description, "arn:aws:ecs:us-west-2:123456789012:cluster/prod") {
		t.Errorf("description = %v, %v", token, err)
	}
}

// TestUserMetaCannotEscapeCleanUp: our keys win.
func TestUserMetaCannotEscapeCleanUp(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	s.options.Config.ConsulLogin.Meta = map[string]string{"consul.hashicorp.com/task-id": "other"}
	s.mustRun()
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want one that names the task", tokens)
	}
}

func TestFileGroup(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, NOT PROVEN: only root can give files to another group")
	}
	s := newFixture(t, secured, loginDoc)
	if err := os.Chown(s.dir, -1, 12345); err != nil {
		t.Fatal(err)
	}
	s.mustRun()
	wantGroup(t, s, 12345)
	s.options.FileGroup = 23456
	s.mustRun()
	wantGroup(t, s, 23456)
}

// TestGRPCAddress: the environment decides, 0.6's address is the default.
func TestGRPCAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": `"port_value": 8502`, "127.0.0.9:8599": `"address": "127.0.0.9"`} {
		s := newFixture(t, open, `{"bootstrapDir":"DIR"}`)
		s.options.Proxy = meshinit.AgentProxy{GRPC: meshinit.GRPC{Address: address}}
		s.mustRun()
		if got := string(s.file(workload.FileBootstrap)); !strings.Contains(got, want) {
			t.Errorf("address %q: bootstrap has no %s", address, want)
		}
	}
}

// TestTokenOfTheEnvironment: without a login Envoy presents the agent client's.
func TestTokenOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, `{"bootstrapDir":"DIR"}`)
	agent := s.deps.Consul
	s.deps.Consul = func() (meshinit.Consul, error) {
		a, err := agent()
		a.Token = "from-the-environment"
		return a, err
	}
	s.mustRun()
	if !strings.Contains(string(s.file(workload.FileBootstrap)), "from-the-environment") {
		t.Error("the bootstrap has no token")
	}
	s.wantMode(workload.FileBootstrap, 0o640)
}
