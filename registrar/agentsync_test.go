package registrar_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// An agent whose full synchronization failed, or met a registration, sends checks to the
// servers only during writes of its clients, for 15 s and longer. The proxy's check follows
// the service's after such a write.
func TestProxyChecksReachTheServersOfAnAgentThatCannotSynchronize(t *testing.T) {
	t.Parallel()
	consul := deafAgent(t)
	admin := client(t, consul, consul.Token)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := agentSubject(t, consul)
	w := s.Service(t, "web", "deaf")
	w.Proxy.ListenerCheck = listener.Addr().String()
	register(t, s, w)
	testkit.Eventually(t, "a check of the listener", func() bool {
		status, _, _ := s.Check(t, "service:"+w.Proxy.ID+":1")
		return status == api.HealthPassing
	})
	for i := range 6 {
		status := []string{api.HealthPassing, api.HealthCritical}[i%2]
		set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: status, First: i == 0})
		checks, _, err := admin.Health().Checks(w.Proxy.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := checks.AggregatedStatus(); got != status {
			t.Errorf("write %d: the proxy is %s at the servers, want %s", i, got, status)
		}
	}
}

// So it is for a workload that the agent has lost, and that a refresh registers again.
func TestRestoredProxyReachesTheServersOfAnAgentThatCannotSynchronize(t *testing.T) {
	t.Parallel()
	consul := deafAgent(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := agentSubject(t, consul)
	w := s.Service(t, "web", "lost")
	w.Proxy.ListenerCheck = listener.Addr().String()
	var got string
	for range 3 { // the agent of a busy machine may check the listener late
		if !set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: api.HealthPassing, Refresh: true}) {
			t.Error("not restored")
		}
		checks, _, err := client(t, consul, consul.Token).Health().Checks(w.Proxy.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got = checks.AggregatedStatus(); len(checks) != 0 && got == api.HealthPassing {
			return
		}
		s.Forget(t, w.Proxy.ID)
		s.Forget(t, w.ID)
	}
	t.Errorf("the proxy is %s at the servers, want passing", got)
}

// The proxy of a task without health checks, and a gateway, get into traffic when their
// listener serves, whatever the agent's state.
func TestPublishReachesTheServersOfAnAgentThatCannotSynchronize(t *testing.T) {
	t.Parallel()
	consul := deafAgent(t)
	admin := client(t, consul, consul.Token)
	s := agentSubject(t, consul)
	service := s.Service(t, "web", "checkless")
	service.SyncChecks = nil
	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range []workload.Workload{service, s.Gateway(t, "gateway", "deaf")} {
		address := fmt.Sprintf("127.0.0.1:%d", ports[i])
		w.Proxy.ListenerCheck = address
		register(t, s, w)
		published := make(chan error, 1)
		go func() { published <- registrar.Publisher(admin)(t.Context(), consul.Token, w) }()
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if err := <-published; err != nil {
			t.Fatal(err)
		}
		checks, _, err := admin.Health().Checks(w.Proxy.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := checks.AggregatedStatus(); len(checks) == 0 || got != api.HealthPassing {
			t.Errorf("proxy %s is %s at the servers, want passing", w.Proxy.ID, got)
		}
	}
}

// Without ACLs an agent takes a service before it has joined, and when the same is registered
// again, does not send it to the servers before its next full synchronization, up to 3 s after
// it has joined, or 30 s.
func TestRegistrationWithAnAgentThatJoinsLate(t *testing.T) {
	t.Parallel()
	server, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Require(t).Stop)
	admin := client(t, server, "")
	joining := startClient(t)
	s := agentSubject(t, joining)
	w := s.Service(t, "web", "late")
	attempt := func() error { return s.Registrar.Register(context.Background(), "", w) }
	for range 2 {
		if err := attempt(); err == nil || consulutil.Classify(err) == retry.Permanent {
			t.Fatalf("error %v of an agent that has not joined, want one to retry", err)
		}
	}
	join(t, joining, server)
	testkit.Eventually(t, "a registration", func() bool { return attempt() == nil })
	entries, _, err := admin.Health().Service(w.Name, "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Checks.AggregatedStatus() != api.HealthCritical {
		t.Errorf("the servers have %+v after the registration, want the service with its critical check", entries)
	}
}

// An agent that synchronizes sends by itself what follows from a write, and a second one is
// not needed. It may have to synchronize first, as above.
func TestChangeIsWrittenOnceToAnAgentThatSynchronizes(t *testing.T) {
	t.Parallel()
	server, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Require(t).Stop)
	agent := startClient(t)
	join(t, agent, server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var writes atomic.Int32
	count := func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
	counted, err := consulutil.NewClient(consulutil.Options{Address: agent.HTTPAddr, Wrap: count})
	if err != nil {
		t.Fatal(err)
	}
	s := agentSubject(t, agent)
	s.Registrar = registrar.New(&config.Config{}, counted)
	w := s.Service(t, "web", "once")
	w.Proxy.ListenerCheck = listener.Addr().String()
	testkit.Eventually(t, "a registration", func() bool { return s.Registrar.Register(t.Context(), "", w) == nil })
	set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: api.HealthPassing, First: true})
	const changes = 4
	testkit.Eventually(t, "one write for each change", func() bool {
		writes.Store(0)
		for i := range changes {
			status := []string{api.HealthCritical, api.HealthPassing}[i%2]
			set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: status})
			checks, _, err := client(t, server, "").Health().Checks(w.Proxy.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := checks.AggregatedStatus(); got != status {
				t.Errorf("change %d: the proxy is %s at the servers, want %s", i, got, status)
			}
		}
		return writes.Load() == changes
	})
}

// join makes a client agent join a server.
func join(t *testing.T, agent, server *testkit.Consul) {
	t.Helper()
	self, err := client(t, server, "").Agent().Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := client(t, agent, "").Agent().Join(fmt.Sprintf("127.0.0.1:%v", self["Member"]["Port"]),
		false); err != nil {
		t.Fatal(err)
	}
}

// deafAgent starts an agent, also a server, whose full synchronization fails.
func deafAgent(t *testing.T) *testkit.Consul {
	t.Helper()
	consul, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consul.Require(t).Stop)
	if _, err := client(t, consul, consul.Token).Agent().UpdateAgentACLToken("11111111-1111-1111-1111-111111111111",
		nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a failed synchronization", func() bool {
		return strings.Contains(consul.Log(), "failed to sync remote state")
	})
	return consul
}

// startClient starts a client agent that has not joined.
func startClient(t *testing.T) *testkit.Consul {
	t.Helper()
	ports, err := testkit.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.hcl")
	hcl := fmt.Sprintf(
		"data_dir = %q bind_addr = \"127.0.0.1\" node_name = \"client\" ports { http = %d grpc = -1 grpc_tls = -1 "+
			"dns = -1 server = %d serf_lan = %d }\n",
		filepath.Join(dir, "data"), ports[0], ports[1], ports[2])
	if err := os.WriteFile(file, []byte(hcl), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testkit.RequireBinary(t, "consul"), "agent", "-config-file="+file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := &testkit.Consul{HTTPAddr: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	testkit.Eventually(t, "the agent answers", func() bool {
		_, err := client(t, c, "").Agent().Self()
		return err == nil
	})
	return c
}
