package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// callsItself makes the task's service one that the application behind Envoy serves, and
// that it calls at the returned address by its own Envoy, through mTLS.
func (k *task) callsItself(t *testing.T) (upstream string) {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok")
	}))
	t.Cleanup(app.Close)
	appPort := app.Listener.Addr().(*net.TCPAddr).Port
	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*api.AgentService{
		{ID: k.service + "-abc", Service: k.service, Port: appPort, Address: "127.0.0.1"},
		{
			ID: k.proxyID, Service: k.service + "-sidecar-proxy", Kind: api.ServiceKindConnectProxy, Port: ports[0],
			Address: "127.0.0.1",
			Proxy: &api.AgentServiceConnectProxyConfig{
				DestinationServiceName: k.service, DestinationServiceID: k.service + "-abc", LocalServicePort: appPort,
				Upstreams: []api.Upstream{{DestinationName: k.service, LocalBindPort: ports[1]}},
			},
		},
	} {
		if _, err := k.client.Catalog().Register(&api.CatalogRegistration{
			Node: clusterNode, Address: "127.0.0.1", SkipNodeUpdate: true, Service: s,
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = k.client.ConfigEntries().Set(&api.ServiceIntentionsConfigEntry{
		Kind: api.ServiceIntentions, Name: k.service,
		Sources: []*api.SourceIntention{{Name: k.service, Action: api.IntentionActionAllow}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d/", ports[1])
}

// get sends one request on a new connection.
func get(url string) error {
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: testkit.Patience}).Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
		return fmt.Errorf("%s: %q: %w", resp.Status, body, err)
	}
	return nil
}

// TestNoRequestIsLostWithTheServer: the server that Envoy has its stream from is lost ten
// times, under requests that nothing repeats.
func TestNoRequestIsLostWithTheServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	k := newTask(t, "loop")
	url := k.callsItself(t)
	front := startFront(t, k.consul.GRPCTLSAddr)
	set := newServers(front.address)
	secret := k.token(t).SecretID
	r := k.startXDS(t, XDSConfig{
		Servers: set, Token: func() (string, error) { return secret, nil }, TLS: fixed(serverTLS()),
	})
	k.startEnvoy(t)
	testkit.Eventually(t, "the task calls itself", func() bool { return get(url) == nil })

	var answered atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
			select {
			case <-stop:
				return
			default:
			}
			if err := get(url); err != nil {
				t.Errorf("request %d: %v", answered.Load(), err)
			}
			answered.Add(1)
		}
	}()
	defer func() {
		close(stop)
		<-ended
		t.Logf("%d requests", answered.Load())
	}()
	for range 10 {
		next := startFront(t, k.consul.GRPCTLSAddr)
		set.set(front.address, next.address)
		front.cut()
		testkit.Eventually(t, "another server serves", func() bool {
			return strings.Contains(r.log.String(), "[INFO]  xDS stream established: address="+next.address)
		})
		before := answered.Load()
		testkit.Eventually(t, "requests after that", func() bool { return answered.Load() >= before+20 })
		front = next
	}
}
