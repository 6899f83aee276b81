package subcommand

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/reach"
)

// callMesh is a server and services web, api and billing on one node, whose proxies may have an Envoy. web calls api.
type callMesh struct {
	t      *testing.T
	consul *testkit.Consul
	client *api.Client
	dir    string
	app    int // port of the application, which answers every request of every service
	web    int // port of web's upstream for api
	other  int // port of its other upstream
	proxy  map[string]int
	admin  map[string]string // addresses of Envoy
	round  int
	rand   *rand.Rand
}

const callNode = "arn:aws:ecs:us-east-1:123456789012:cluster/why"

var callServices = []string{"web", "api", "billing"}

func newCallMesh(t *testing.T, o testkit.ConsulOptions) *callMesh {
	t.Helper()
	c, err := testkit.StartConsul(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	c.Require(t)
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	ports, err := testkit.FreePorts(2 + 2*len(callServices))
	if err != nil {
		t.Fatal(err)
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w,
			"served")
	}))
	t.Cleanup(app.Close)
	m := &callMesh{
		t: t, consul: c, client: client, dir: t.TempDir(), app: app.Listener.Addr().(*net.TCPAddr).Port, web: ports[0],
		other: ports[1],
		proxy: map[string]int{}, admin: map[string]string{},
	}
	for i, s := range callServices {
		m.proxy[s], m.admin[s] = ports[2+2*i], fmt.Sprintf("127.0.0.1:%d", ports[3+2*i])
	}
	return m
}

// instance is how a service is registered.
type instance struct {
	absent, proxyless bool
	status            string // of the proxy's check
	version           string
	weight            int // with a warning
	localPort         int
	upstream          string
}

// right returns the registration of a service that can be called.
func (m *callMesh) right() instance {
	return instance{status: api.HealthPassing, version: "1", weight: 1, localPort: m.app, upstream: "api"}
}

// register writes a service and its proxy as described.
func (m *callMesh) register(service string, i instance) {
	m.t.Helper()
	id := service + "-1"
	write := func(s *api.AgentService, remove bool, checks ...*api.HealthCheck) {
		var err error
		if remove {
			_, err = m.client.Catalog().Deregister(&api.CatalogDeregistration{Node: callNode, ServiceID: s.ID}, nil)
		} else {
			s.Address, s.Meta = "127.0.0.1", map[string]string{"version": i.version}
			s.Weights = api.AgentWeights{Passing: 1, Warning: i.weight}
			_, err = m.client.Catalog().Register(&api.CatalogRegistration{
				Node: callNode, Address: "127.0.0.1", NodeMeta: map[string]string{"synthetic-node": "true"},
				SkipNodeUpdate: true, Service: s, Checks: checks,
			}, nil)
		}
		if err != nil && !strings.Contains(err.Error(), "Unknown service") {
			m.t.Fatal(err)
		}
	}
	write(&api.AgentService{ID: id, Service: service, Port: m.app}, i.absent)
	proxy := &api.AgentServiceConnectProxyConfig{
		DestinationServiceName: service, DestinationServiceID: id, LocalServicePort: i.localPort,
		Upstreams: []api.Upstream{{DestinationName: fmt.Sprintf("mark-%d", m.round),
			LocalBindSocketPath: filepath.Join(m.dir,
				fmt.Sprintf("%s-%d", service, m.round))}},
	}
	if service == "web" && i.upstream != "" {
		port := m.web
		if i.upstream != "api" {
			port = m.other
		}
		proxy.Upstreams = append(proxy.Upstreams, api.Upstream{DestinationName: i.upstream, LocalBindPort: port})
	}
	write(&api.AgentService{
		ID: id + "-sidecar-proxy", Service: service + "-sidecar-proxy", Kind: api.ServiceKindConnectProxy,
		Port: m.proxy[service], Proxy: proxy,
	}, i.absent || i.proxyless, &api.HealthCheck{
		Node: callNode, CheckID: id + "-check", Name: "Container " + service, Status: i.status,
		ServiceID: id + "-sidecar-proxy", Output: "from ECS",
	})
}

// write writes a configuration entry. It reports whether the server takes it.
func (m *callMesh) write(text string) bool {
	entry, err := api.DecodeConfigEntryFromJSON([]byte(text))
	if err != nil {
		m.t.Fatalf("%s: %v", text, err)
	}
	_, _, err = m.client.ConfigEntries().Set(entry, nil)
	return err == nil
}

// clear deletes all entries, those first that others need.
func (m *callMesh) clear() {
	m.t.Helper()
	for _, kind := range []string{api.ServiceIntentions, api.ServiceRouter, api.ServiceSplitter, api.ServiceResolver,
		api.ServiceDefaults} {
		entries, _, err := m.client.ConfigEntries().List(kind, nil)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, e := range entries {
			if _, err := m.client.ConfigEntries().Delete(kind, e.GetName(), nil); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

// pad registers proxies without an Envoy: the server closes streams when they are more than it has proxies.
func (m *callMesh) pad() {
	m.t.Helper()
	for i := range 10 {
		_, err := m.client.Catalog().Register(&api.CatalogRegistration{
			Node: callNode, Address: "127.0.0.1", SkipNodeUpdate: true, Service: &api.AgentService{
				ID: fmt.Sprintf("idle-%d", i), Service: "idle-sidecar-proxy", Kind: api.ServiceKindConnectProxy,
				Port:  1,
				Proxy: &api.AgentServiceConnectProxyConfig{DestinationServiceName: "idle"},
			},
		}, nil)
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// startEnvoys starts one for each service.
func (m *callMesh) startEnvoys() {
	m.t.Helper()
	for _, s := range callServices {
		doc, err := bootstrap.Generate(bootstrap.Params{
			Proxy: bootstrap.Proxy{Kind: bootstrap.ConnectProxy, Service: s + "-sidecar-proxy", Destination: s,
				Datacenter: "dc1"},
			ProxyID: s + "-1-sidecar-proxy", NodeName: callNode, Token: m.consul.Token,
			GRPC: bootstrap.GRPC{Address: m.consul.GRPCAddr}, AdminBind: m.admin[s],
		})
		if err != nil {
			m.t.Fatal(err)
		}
		file := filepath.Join(m.dir, s+".json")
		if err := os.WriteFile(file, doc, 0o600); err != nil {
			m.t.Fatal(err)
		}
		testkit.StartProcess(m.t, testkit.ProcessOptions{Quiet: true}, testkit.RequireBinary(m.t, "envoy"), "-c", file,
			"--disable-hot-restart", "--concurrency", "1", "--log-level", "warn", "--log-path", filepath.Join(m.dir,
				s+".log"))
	}
}

// converged waits until the Envoy of a service has the listener of this round, which Consul sends after the rest.
func (m *callMesh) converged(service string) {
	m.t.Helper()
	defer func() {
		if m.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(m.dir, service+".log"))
			m.t.Logf("Envoy of %s: %s", service, log)
		}
	}()
	testkit.Within(m.t, testkit.Patience, service+" has its configuration", func() bool {
		resp, err := http.Get("http://" + m.admin[service] + "/listeners")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), fmt.Sprintf("mark-%d:", m.round))
	})
}

// served sends requests as web's application, and reports whether all were answered.
func (m *callMesh) served(path string) bool {
	const requests = 12
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for range requests {
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", m.web, path))
		if err != nil {
			return false
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "served" || err != nil {
			return false
		}
	}
	return true
}

// examine answers as the command does.
func (m *callMesh) examine(path string) reach.Report {
	m.t.Helper()
	q := reach.Question{Source: "web", Destination: "api", Request: reach.Request{Method: http.MethodGet, Path: path}}
	facts, err := consulutil.ReadReach(m.t.Context(),
		consulutil.Options{Address: m.consul.HTTPAddr, Token: m.consul.Token}, q)
	if err != nil {
		m.t.Fatal(err)
	}
	return reach.Examine(q, facts)
}

// pick returns one of the values, the first more often than the rest together.
func pick[T any](r *rand.Rand, usual T, others ...T) T {
	if r.IntN(10) < 6 {
		return usual
	}
	return others[r.IntN(len(others))]
}

// change makes a random round: registrations and entries, of which the server refuses some. It returns what it wrote.
func (m *callMesh) change() (wrote []string) {
	r := m.rand
	m.round++
	m.clear()
	for _, s := range callServices {
		i := m.right()
		if s != "web" {
			i.status = pick(r, i.status, api.HealthWarning, api.HealthCritical)
			i.weight = pick(r, 1, 0)
			i.version = pick(r, "1", "2")
			i.localPort = pick(r, i.localPort, pick(r, i.localPort, 0))
			i.proxyless = pick(r, false, pick(r, false, true))
			i.absent = pick(r, false, pick(r, false, true))
		} else {
			i.upstream = pick(r, "api", pick(r, "api", "", "billing"))
		}
		m.register(s, i)
		wrote = append(wrote, fmt.Sprintf("%s %+v", s, i))
		if !i.absent && !i.proxyless {
			defer m.converged(s)
		}
	}
	protocol := pick(r, "http", "tcp")
	for _, entry := range m.entries(protocol) {
		if entry != "" && m.write(entry) {
			wrote = append(wrote, entry)
		}
	}
	return wrote
}

// entries returns random configuration entries; an empty one is none.
func (m *callMesh) entries(protocol string) []string {
	r := m.rand
	defaults := func(name string) string {
		return fmt.Sprintf(`{"Kind": "service-defaults", "Name": %q, "Protocol": %q}`, name, pick(r, protocol, "tcp"))
	}
	intention := func(name string) string {
		source := func(name string) string {
			return fmt.Sprintf(`{"Name": %q, `, name) + pick(r, `"Action": "allow"}`, `"Action": "deny"}`,
				`"Permissions": [{"Action": "allow", "HTTP": {"PathPrefix": "/a", "Methods": ["GET"]}}]}`,
				`"Permissions": [{"Action": "deny", "HTTP": {"PathExact": "/admin"}},
					{"Action": "allow", "HTTP": {"PathPrefix": "/"}}]}`)
		}
		sources := pick(r, source("web"), source("web")+", "+source("*"), source("*"), source("other"))
		return fmt.Sprintf(`{"Kind": "service-intentions", "Name": %q, "Sources": [%s]}`, name, sources)
	}
	// api returns an entry of api, by its members.
	api := func(kind, members string) string {
		return fmt.Sprintf(`{"Kind": "service-%s", "Name": "api", %s}`, kind, members)
	}
	split := func(one, other int, service string) string {
		return api("splitter", fmt.Sprintf(`"Splits": [{"Weight": %d}, {"Weight": %d, "Service": %q}]`, one, other,
			service))
	}
	route := func(prefix, destination string) string {
		return api("router", fmt.Sprintf(`"Routes": [{"Match": {"HTTP": {"PathPrefix": %q}}, "Destination": {%s}}]`,
			prefix,
			destination))
	}
	subset := func(version int, members string) string {
		return api("resolver",
			fmt.Sprintf(`"DefaultSubset": "v", "Subsets": {"v": {"Filter": "Service.Meta.version == %d"%s}}`,
				version, members))
	}
	return []string{
		defaults("api"), defaults("billing"), defaults("ghost"),
		pick(r, "", subset(1, ""), subset(2, `, "OnlyPassing": true`),
			api("resolver", `"Redirect": {"Service": "billing"}`), api("resolver", `"Redirect": {"Service": "ghost"}`),
			api("resolver", `"Failover": {"*": {"Service": "billing"}}`)),
		pick(r, "", split(50, 50, "billing"), split(100, 0, "ghost"), split(50, 50, "ghost")),
		pick(r, "", route("/admin", `"Service": "billing"`), route("/ok", `"PrefixRewrite": "/admin"`)),
		intention("api"), pick(r, intention("billing"), ""), pick(r, "", intention("*")),
	}
}

// TestWhyAgreesWithEnvoy: in random meshes the answer is what web's requests through two Envoys get.
func TestWhyAgreesWithEnvoy(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]testkit.ConsulOptions{"default deny": {ACL: true}, "default allow": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 250
			switch {
			case testing.Short() && !o.ACL:
				testkit.Long(t)
			case testing.Short():
				rounds = 5
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			m := newCallMesh(t, o)
			m.rand = rand.New(rand.NewPCG(seed, 0))
			for _, s := range callServices {
				m.register(s, m.right())
			}
			m.pad()
			m.startEnvoys()
			count := map[reach.State]int{}
			for range rounds {
				wrote := m.change()
				path := pick(m.rand, "/", "/admin", "/a", "/ok")
				report := m.examine(path)
				count[report.Result]++
				want := report.Result == reach.OK
				if !m.agrees(path, want) {
					text, _ := json.MarshalIndent(report, "", " ")
					t.Fatalf("round %d: GET %s: why says %v, Envoy does not\n%s\n%s", m.round, path, want,
						strings.Join(wrote, "\n"), text)
				}
			}
			t.Logf("answers: %v", count)
			if count[reach.Unknown] > 0 {
				t.Errorf("%d answers are unknown, with a token that may read all", count[reach.Unknown])
			}
		})
	}
}

// agrees reports whether requests get what is wanted, and still do when the proxies have settled: Consul collects
// changes before it sends them, and sends those of different kinds one after the other.
func (m *callMesh) agrees(path string, want bool) bool {
	same := 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		<-tick.C
		same++
		if m.served(path) != want {
			same = 0
		}
		if same == 2 {
			return true
		}
	}
	return false
}
