package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const clusterNode = "arn:aws:ecs:us-east-1:123456789012:cluster/test"

// front is a TCP proxy before a server that can be cut.
type front struct {
	address string

	mu    sync.Mutex
	l     net.Listener
	conns []net.Conn
}

func startFront(t *testing.T, backend string) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{address: l.Addr().String(), l: l}
	t.Cleanup(f.cut)
	go func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			server, err := net.Dial("tcp", backend)
			if err != nil {
				client.Close()
				continue
			}
			f.mu.Lock()
			f.conns = append(f.conns, client, server)
			f.mu.Unlock()
			go io.Copy(client, server)
			go io.Copy(server, client)
		}
	}()
	return f
}

// cut refuses new connections and closes the open ones.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.l.Close()
	for _, c := range f.conns {
		c.Close()
	}
}

// task is a service with its sidecar in the catalog, and an Envoy.
type task struct {
	service, proxyID, admin, relay string

	consul *testkit.Consul
	client *api.Client
	dir    string
}

// newTask registers a service, as a task without an agent does.
func newTask(t *testing.T, service string) *task {
	t.Helper()
	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	consul := requireServer(t)
	client, err := consulutil.NewClient(consulutil.Options{Address: consul.HTTPAddr, Token: consul.Token})
	if err != nil {
		t.Fatal(err)
	}
	k := &task{
		service: service, proxyID: service + "-abc-sidecar-proxy", consul: consul, client: client, dir: t.TempDir(),
		admin: fmt.Sprintf("127.0.0.1:%d", ports[0]), relay: fmt.Sprintf("127.0.0.1:%d", ports[1]),
	}
	k.register(t, nil)
	k.register(t, &api.AgentServiceConnectProxyConfig{
		DestinationServiceName: service, DestinationServiceID: service + "-abc", LocalServicePort: 8080,
	})
	return k
}

// register writes the service, or the sidecar with its configuration.
func (k *task) register(t *testing.T, proxy *api.AgentServiceConnectProxyConfig) {
	t.Helper()
	s := &api.AgentService{ID: k.service + "-abc", Service: k.service, Port: 8080, Address: "127.0.0.1"}
	if proxy != nil {
		s = &api.AgentService{
			ID: k.proxyID, Service: k.service + "-sidecar-proxy", Kind: api.ServiceKindConnectProxy, Port: 20000,
			Address: "127.0.0.1", Proxy: proxy,
		}
	}
	r := &api.CatalogRegistration{
		Node: clusterNode, Address: "127.0.0.1", NodeMeta: map[string]string{"synthetic-node": "true"},
		SkipNodeUpdate: true, Service: s,
	}
	if _, err := k.client.Catalog().Register(r, nil); err != nil {
		t.Fatal(err)
	}
}

// update gives the sidecar one upstream, which Envoy gets as a listener.
func (k *task) update(t *testing.T, upstream string) {
	t.Helper()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	k.register(t, &api.AgentServiceConnectProxyConfig{
		DestinationServiceName: k.service, DestinationServiceID: k.service + "-abc", LocalServicePort: 8080,
		Upstreams: []api.Upstream{{DestinationName: upstream, LocalBindPort: ports[0]}},
	})
}

// token makes a token like a login's.
func (k *task) token(t *testing.T) *api.ACLToken {
	t.Helper()
	made, _, err := k.client.ACL().TokenCreate(&api.ACLToken{
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: k.service}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// startEnvoy starts Envoy with the bootstrap that mesh-init writes.
func (k *task) startEnvoy(t *testing.T) {
	t.Helper()
	doc, err := bootstrap.Generate(bootstrap.Params{
		Proxy: bootstrap.Proxy{
			Kind: bootstrap.ConnectProxy, Service: k.service + "-sidecar-proxy", Destination: k.service,
			Datacenter: "dc1",
		},
		ProxyID: k.proxyID, NodeName: clusterNode, Relay: true, GRPC: bootstrap.GRPC{Address: k.relay},
		AdminBind: k.admin,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(k.dir, "envoy-bootstrap.json")
	if err := os.WriteFile(path, doc, 0o444); err != nil {
		t.Fatal(err)
	}
	testkit.StartProcess(t, testkit.ProcessOptions{Quiet: true}, testkit.RequireBinary(t, "envoy"),
		"--config-path", path,
		"--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
}

// startXDS runs the relay where Envoy expects it.
func (k *task) startXDS(t *testing.T, c XDSConfig) *relay {
	t.Helper()
	l, err := net.Listen("tcp", k.relay)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, c, l)
}

// listener waits until Envoy has a listener, and returns how long it took.
func (k *task) listener(t *testing.T, name string) time.Duration {
	t.Helper()
	return testkit.Within(t, testkit.Patience, "envoy has the listener "+name, func() bool {
		resp, err := http.Get("http://" + k.admin + "/listeners")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), name+":")
	})
}

// Envoy keeps its one bootstrap while servers and tokens come and go.
func TestEnvoyFollowsServersAndTokens(t *testing.T) {
	t.Parallel()
	k := newTask(t, "web")
	fronts := make([]*front, 9)
	set := newServers()
	for i := range fronts {
		fronts[i] = startFront(t, k.consul.GRPCTLSAddr)
		set.addresses = append(set.addresses, fronts[i].address)
	}
	oldToken := k.token(t)
	file := &tokenFile{secret: oldToken.SecretID}
	r := k.startXDS(t, XDSConfig{Servers: set, Token: file.read, TLS: fixed(serverTLS())})
	k.startEnvoy(t)
	k.listener(t, "public_listener")

	// A machine that is busy for a moment is not so each time.
	quickest, serving := testkit.Patience, fronts[0]
	for _, next := range fronts[1:] {
		serving.cut()
		serving = next
		quickest = min(quickest, testkit.Within(t, testkit.Patience, "the next server serves", func() bool {
			return strings.Count(r.log.String(), "[INFO]  xDS stream established: address="+next.address) >= 1
		}))
		if quickest <= 2*time.Second {
			break
		}
	}
	t.Logf("another server served after %s", quickest)
	if quickest > 2*time.Second {
		t.Errorf("another server served after %s at best, want 2 s at most", quickest)
	}
	k.update(t, "after-cut")
	k.listener(t, "after-cut")

	file.set(k.token(t).SecretID, nil)
	r.logged(t, "[INFO]  ended the xDS stream, envoy opens another: address="+serving.address+
		` reason="the token was renewed"`)
	if _, err := k.client.ACL().TokenDelete(oldToken.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the stream with the new token", func() bool {
		return strings.Count(r.log.String(), "[INFO]  xDS stream established: address="+serving.address) >= 2
	})
	k.update(t, "after-renewal")
	k.listener(t, "after-renewal")
}

func TestEnvoyStartsWhenTheTokenIsCorrected(t *testing.T) {
	t.Parallel()
	k := newTask(t, "late")
	file := &tokenFile{secret: "00000000-0000-0000-0000-00000000dead"}
	r := k.startXDS(t, XDSConfig{Servers: newServers(k.consul.GRPCAddr), Token: file.read})
	k.startEnvoy(t)
	r.logged(t, "the task's token must exist in Consul and grant service:write on the service of the proxy")
	file.set(k.token(t).SecretID, nil)
	took := k.listener(t, "public_listener")
	t.Logf("listeners came after %s", took)
}

// A server whose TLS differs from what is configured is the commonest mistake.
func TestWrongProtocolOfARealServerIsNamed(t *testing.T) {
	t.Parallel()
	consul := requireServer(t)
	for name, tc := range map[string]struct {
		config XDSConfig
		want   string
	}{
		"TLS to plaintext": {
			XDSConfig{Servers: newServers(consul.GRPCAddr), TLS: fixed(serverTLS())},
			"set consulServers.grpc.tls to false",
		},
		"plaintext to TLS": {XDSConfig{Servers: newServers(consul.GRPCTLSAddr)}, "set consulServers.grpc.tls to true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startXDS(t, tc.config)
			r.try(t)
			r.logged(t, tc.want)
		})
	}
}

// TestStatsShowThatServersRefuse an Envoy that they have served, as after their upgrade. While no
// server can be reached, its stream waits in the relay, and the gauge is as before.
func TestStatsShowThatServersRefuse(t *testing.T) {
	t.Parallel()
	k := newTask(t, "refused")
	set := newServers(k.consul.GRPCAddr)
	r := k.startXDS(t, XDSConfig{Servers: set, Token: (&tokenFile{secret: k.token(t).SecretID}).read})
	k.startEnvoy(t)
	k.listener(t, "public_listener")
	k.connected(t, 1)

	set.set("127.0.0.1:1")
	r.logged(t, "connect Envoy with a Consul server failed, retrying: attempt=1")
	k.connected(t, 1)

	var streams atomic.Int32
	tooOld := refusing(status{"3", "Envoy 1.20.0 is too old and is not supported by Consul"})
	set.set(address(startServer(t, func(w http.ResponseWriter, req *http.Request) {
		streams.Add(1)
		tooOld(w, req)
	})))
	for n := range int32(3) {
		testkit.Eventually(t, "another refusal", func() bool { return streams.Load() > n })
		k.connected(t, 0)
	}
}

// connected waits until Envoy's gauge about its xDS stream has a value.
func (k *task) connected(t *testing.T, want int) {
	t.Helper()
	gauge := fmt.Sprintf("control_plane.connected_state: %d\n", want)
	testkit.Eventually(t, gauge, func() bool {
		resp, err := http.Get("http://" + k.admin + "/stats?filter=^control_plane.connected_state$")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && string(text) == gauge
	})
}
