package entrypoint

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// meshGateway is a running mesh gateway with mesh-init's bootstrap, in front of a service
// whose proxy ends TLS and holds connections until their callers end them.
type meshGateway struct {
	admin, address string
	// serverName leads to the service.
	serverName string
}

func startMeshGateway(t *testing.T) meshGateway {
	t.Helper()
	bin := testkit.RequireBinary(t, "envoy")
	consul, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consul.Require(t).Stop)
	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	g := meshGateway{admin: fmt.Sprintf("127.0.0.1:%d", ports[0]), address: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	testkit.Eventually(t, "the CA is ready", func() bool {
		resp, err := http.Get("http://" + consul.HTTPAddr + "/v1/connect/ca/roots")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	var roots struct{ TrustDomain string }
	askConsul(t, consul, http.MethodGet, "/v1/connect/ca/roots", "", &roots)
	g.serverName = "web.default.dc1.internal." + roots.TrustDomain
	askConsul(t, consul, http.MethodPut, "/v1/agent/service/register", fmt.Sprintf(`{"Name": "web", "Port": 1, "Connect": {"SidecarService":
		{"Address": "127.0.0.1", "Port": %d, "Checks": [{"TTL": "1h", "Status": "passing"}]}}}`, serveTLS(t)), nil)
	askConsul(t, consul, http.MethodPut, "/v1/agent/service/register", fmt.Sprintf(`{"ID": "edge-1", "Name": "edge", "Kind": "mesh-gateway",
		"Address": "127.0.0.1", "Port": %d}`, ports[1]), nil)
	text, err := bootstrap.Generate(bootstrap.Params{
		Proxy:   bootstrap.Proxy{Kind: bootstrap.MeshGateway, Service: "edge", Datacenter: "dc1"},
		ProxyID: "edge-1", GRPC: bootstrap.GRPC{Address: consul.GRPCAddr}, AdminBind: g.admin,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{bin, "--config-path", path, "--disable-hot-restart",
		"--concurrency", "1", "--log-level", "error"}
	testkit.StartProcess(t, testkit.ProcessOptions{Quiet: true}, command...)
	if p, err := ReadBootstrap(command); err != nil || p.Admin != g.admin || !p.Gateway {
		t.Errorf("bootstrap read as %+v, %v", p, err)
	}
	testkit.Eventually(t, "the gateway leads to the service", func() bool { return g.call() == nil })
	return g
}

// askConsul makes a request to the agent and decodes the answer into out, if not nil.
func askConsul(t *testing.T, consul *testkit.Consul, method, path, body string, out any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+consul.HTTPAddr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s, %v", method, path, resp.Status, answer, err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatal(err)
		}
	}
}

// serveTLS starts the proxy of the service behind the gateway, and returns its port.
func serveTLS(t *testing.T) int {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{writeIdentity(t, filepath.Join(t.TempDir(), "identity.pem"))}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			go func() {
				defer c.Close()
				io.Copy(io.Discard, c)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// dial connects to the service through the gateway, as a caller's proxy does.
func (g meshGateway) dial(serverName string) (*tls.Conn, error) {
	dialer := &net.Dialer{Timeout: testkit.Patience}
	return tls.DialWithDialer(dialer, "tcp", g.address, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
}

func (g meshGateway) call() error {
	c, err := g.dial(g.serverName)
	if err == nil {
		err = c.Close()
	}
	return err
}

// TestRealMeshGatewayCountersShowTheEndOfCalls: a busy connection that stays open, probes
// that connect, with TLS and without, and scrapes go on all the time.
func TestRealMeshGatewayCountersShowTheEndOfCalls(t *testing.T) {
	t.Parallel()
	g := startMeshGateway(t)
	busy, err := g.dial(g.serverName)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	go repeat(t.Context(), 50*ms, func() error {
		_, err := busy.Write([]byte("message"))
		return err
	})
	for _, probe := range []func(){
		func() {
			if c, err := net.Dial("tcp", g.address); err == nil {
				c.Close()
			}
		},
		func() {
			if c, err := net.Dial("tcp", g.address); err == nil {
				c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				c.Close()
			}
		},
		func() {
			if c, err := g.dial("probe.example"); err == nil {
				c.Close()
			}
		},
		func() { envoy.Ask(t.Context(), http.MethodGet, g.admin, "/stats/prometheus") },
	} {
		go repeat(t.Context(), 30*ms, func() error { probe(); return nil })
	}
	p := publicListener{Proxy: envoy.Proxy{Admin: g.admin, Gateway: true}}
	for seed := range uint64(3) {
		testCallersGone(t, p, g.call, seed)
	}
	testCallersStay(t, p, g.call)
	// Nor did the busy connection end by all of this.
	busy.SetWriteDeadline(time.Now().Add(testkit.Patience))
	if _, err := busy.Write([]byte("more")); err != nil {
		t.Error(err)
	}
}
