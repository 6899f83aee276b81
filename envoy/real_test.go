package envoy

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// put makes a request to the agent.
func put(t *testing.T, consul *testkit.Consul, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+consul.HTTPAddr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", consul.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, resp.Status)
	}
}

// startProxy registers a service with a proxy, starts its Envoy with mesh-init's
// bootstrap, and returns that file and what it shows.
func startProxy(t *testing.T, consul *testkit.Consul) (bootstrapFile string, p Proxy) {
	t.Helper()
	bin := testkit.RequireBinary(t, "envoy")
	ports, err := testkit.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	put(t, consul, "/v1/agent/service/register", `{"Name": "api", "Port": 1, "Connect": {"SidecarService":
		{"Address": "127.0.0.1", "Checks": [{"TTL": "1h", "Status": "passing"}]}}}`)
	for _, upstreams := range []string{"web", "bare"} {
		list := ""
		if upstreams == "web" {
			list = fmt.Sprintf(`{"DestinationName": "api", "LocalBindPort": %d}`, ports[0])
		}
		put(t, consul, "/v1/agent/service/register", fmt.Sprintf(`{"Name": %q, "Port": 1, "Connect": {"SidecarService":
			{"Address": "127.0.0.1", "Port": %d, "Proxy": {"Upstreams": [%s]}}}}`, upstreams, ports[1], list))
	}
	text, err := bootstrap.Generate(bootstrap.Params{
		Proxy:   bootstrap.Proxy{Kind: bootstrap.ConnectProxy, Service: "web-sidecar-proxy", Destination: "web", Datacenter: "dc1"},
		ProxyID: "web-sidecar-proxy", GRPC: bootstrap.GRPC{Address: consul.GRPCAddr}, Token: consul.Token,
		AdminBind: fmt.Sprintf("127.0.0.1:%d", ports[2]),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.StartProcess(t, testkit.ProcessOptions{Quiet: true}, bin, "--config-path", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	p, err = ReadBootstrap(path)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "envoy has its listeners", func() bool {
		r, err := readResources(t.Context(), p.Admin)
		return err == nil && len(r[listenerType]) == 2 && len(r[endpointType]) == 1
	})
	return path, p
}

// noAnswer is what an agent lacks that does not answer in time.
const noAnswer = "the agent does not have them yet"

// answered asks the agent until it answers, which takes it longer than answerTime on a
// busy machine.
func answered(t *testing.T, ask func() (string, error)) (missing string, err error) {
	t.Helper()
	testkit.Eventually(t, "an answer of the agent", func() bool {
		missing, err = ask()
		return err != nil || !strings.HasSuffix(missing, noAnswer)
	})
	return missing, err
}

// TestRealAgentHasWhatItsEnvoyHas: and the agent that does not know a part of it, since
// the proxy has no upstream, lacks just that.
func TestRealAgentHasWhatItsEnvoyHas(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]testkit.ConsulOptions{"with ACLs": {ACL: true}, "without ACLs": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consul, err := testkit.StartConsul(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(consul.Require(t).Stop)
			path, p := startProxy(t, consul)
			if missing, err := answered(t, func() (string, error) { return Missing(t.Context(), path, consul.GRPCAddr) }); missing != "" || err != nil {
				t.Errorf("missing: %q, %v; want nothing", missing, err)
			}
			ask := func(p Proxy, address string) (missing string, err error) {
				return answered(t, func() (string, error) { return lacks(t.Context(), p, address) })
			}

			bare := p
			bare.ID = "bare-sidecar-proxy"
			missing, err := ask(bare, consul.GRPCAddr)
			if err != nil || !strings.HasPrefix(missing, "Listener api:127.0.0.1:") {
				t.Errorf("missing: %q, %v, want the listener of api", missing, err)
			}

			refused := p
			refused.ID = "unknown-sidecar-proxy"
			if missing, err = lacks(t.Context(), refused, consul.GRPCAddr); err != nil || missing != "read Listener resources from the agent: "+noAnswer {
				t.Errorf("proxy that the agent does not know: missing %q, %v", missing, err)
			}
			if options.ACL {
				refused = p
				refused.Token = ""
				if missing, err = ask(refused, consul.GRPCAddr); err != nil || !strings.Contains(missing, "gRPC status 7") {
					t.Errorf("proxy without a token: missing %q, %v; want that permission is denied", missing, err)
				}
			}
			if missing, err = lacks(t.Context(), p, testkit.ClosedAddress(t)); err != nil || !strings.Contains(missing, "connection refused") {
				t.Errorf("no agent: missing %q, %v", missing, err)
			}
			p.Admin = testkit.ClosedAddress(t)
			if missing, err = lacks(t.Context(), p, consul.GRPCAddr); err == nil {
				t.Errorf("no Envoy: missing %q and no error", missing)
			}
		})
	}
}
