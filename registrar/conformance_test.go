package registrar_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

var (
	secured *testkit.Consul
	open    *testkit.Consul
)

func TestMain(m *testing.M) {
	secured, open = testkit.Servers()
	os.Exit(testkit.Main(m, secured.Stop, open.Stop))
}

func client(t *testing.T, c *testkit.Consul, token string) *api.Client {
	t.Helper()
	got, err := consulutil.NewClient(consulutil.Options{Address: c.Require(t).HTTPAddr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func agentRegistrar(t *testing.T, c *testkit.Consul) registrar.Registrar {
	t.Helper()
	return registrar.New(&config.Config{}, client(t, c, ""))
}

// agentSubject returns the agent implementation on a real agent.
func agentSubject(t *testing.T, c *testkit.Consul) subject {
	admin := client(t, c, c.Token).Agent()
	return subject{
		Registrar: agentRegistrar(t, c),
		Token:     c.Token,
		Check: func(t *testing.T, id string) (string, string, bool) {
			t.Helper()
			checks, err := admin.Checks()
			if err != nil {
				t.Fatal(err)
			}
			check, ok := checks[id]
			if !ok {
				return "", "", false
			}
			return check.Status, check.Output, true
		},
		Forget: func(t *testing.T, id string) {
			t.Helper()
			if err := admin.ServiceDeregister(id); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func TestAgentConforms(t *testing.T) {
	t.Parallel()
	runSuite(t, agentSubject(t, open.Require(t)), "open")
}

func TestAgentConformsWithACLs(t *testing.T) {
	t.Parallel()
	runSuite(t, agentSubject(t, secured.Require(t)), "acl")
}

// TestRefusalNamesTheRemedy: 403 at registration is a missing identity.
func TestRefusalNamesTheRemedy(t *testing.T) {
	t.Parallel()
	w := subject{}.Service(t, "denied", "t1")
	token, _, err := client(t, secured.Require(t), secured.Token).ACL().TokenCreate(&api.ACLToken{
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "other"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = agentRegistrar(t, secured).Register(context.Background(), token.SecretID, w)
	if consulutil.Classify(err) != retry.Permanent {
		t.Fatalf("error = %v, class %v", err, consulutil.Classify(err))
	}
	for _, want := range []string{`register service "denied-t1"`,
		`service identity for "denied"`, "consul.hashicorp.com.service-name=denied"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
	err = agentRegistrar(t, secured).Register(context.Background(), "11111111-1111-1111-1111-111111111111", w)
	if strings.Contains(err.Error(), "service identity") || consulutil.ClassifyNewToken(err) != retry.NotYet {
		t.Errorf("unknown token: error = %v", err)
	}
	err = agentRegistrar(t, secured).Register(context.Background(), "", w)
	if !strings.Contains(err.Error(), "no token was sent: set consulLogin.enabled") ||
		consulutil.Classify(err) != retry.Permanent {
		t.Errorf("no token: error = %v", err)
	}
}

// TestServiceTokenIsEnough: the identity that a login gives may do all of it.
func TestServiceTokenIsEnough(t *testing.T) {
	t.Parallel()
	token, _, err := client(t, secured.Require(t), secured.Token).ACL().TokenCreate(&api.ACLToken{
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := agentSubject(t, secured)
	s.Token = token.SecretID
	w := s.Service(t, "web", "identity")
	if err := s.Registrar.Register(context.Background(), s.Token, w); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Registrar.Proxy(context.Background(), s.Token, w); err != nil {
		t.Error(err)
	}
	for _, first := range []bool{true, false} {
		update := registrar.Update{Check: w.SyncChecks[0], Status: "passing", First: first}
		if r := s.Registrar.Set(context.Background(), s.Token, w, []registrar.Update{update})[0]; r.Err != nil {
			t.Error(r.Err)
		}
	}
}

// TestOutdatedTTLIsReplaced: a check that 0.6 left with 100000h gets our
// TTL, and then runs out by itself.
func TestOutdatedTTLIsReplaced(t *testing.T) {
	t.Parallel()
	s := agentSubject(t, open.Require(t))
	w := s.Service(t, "web", "old-ttl")
	if err := s.Registrar.Register(context.Background(), "", w); err != nil {
		t.Fatal(err)
	}
	id := w.SyncChecks[0].ID
	reregister := func(ttl string) {
		t.Helper()
		err := client(t, open, "").Agent().CheckRegister(&api.AgentCheckRegistration{
			ID: id, Name: "old", ServiceID: w.ID,
			AgentServiceCheck: api.AgentServiceCheck{TTL: ttl, Status: "critical"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	reregister("100000h")
	update := registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "ok", First: true}
	if r := s.Registrar.Set(context.Background(), "", w, []registrar.Update{update})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	status, _, _ := s.Check(t, id)
	if status != "passing" {
		t.Fatalf("status = %s", status)
	}
	// The agent does not return a TTL; that writing replaces it shows with a
	// short one.
	reregister("1s")
	testkit.Eventually(t, "the check runs out", func() bool {
		status, output, _ := s.Check(t, id)
		return status == "critical" && output == "TTL expired"
	})
}

// TestListenerCheckTurnsGreenSoon: the check keeps a started proxy out of traffic
// until the agent looks again, which it does each second; 0.6's interval was 10 s.
// On a busy machine one look may be late, but not every one.
func TestListenerCheckTurnsGreenSoon(t *testing.T) {
	t.Parallel()
	s := agentSubject(t, open.Require(t))
	port := freePort(t)
	name := fmt.Sprintf("soon-%d", port) // new for each -count
	w, err := workload.New(&config.Config{
		Service: &config.Service{Name: name, Port: 9090},
		Proxy:   &config.Proxy{PublicListenerPort: port},
	}, workload.Task{TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/default/soon"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Registrar.Register(context.Background(), "", w); err != nil {
		t.Fatal(err)
	}
	health := client(t, open, "").Health()
	instances := func(passing bool) int {
		entries, _, err := health.Service(workload.ProxyName(name), "", passing, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	testkit.Eventually(t, "the proxy is in the catalog", func() bool { return instances(false) == 1 })
	if instances(true) != 0 {
		t.Fatal("in traffic without a listener")
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	looks := make(chan time.Time, 1000)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			looks <- time.Now()
			c.Close()
		}
	}()
	testkit.Eventually(t, "the proxy is in traffic", func() bool { return instances(true) == 1 })
	last := <-looks
	testkit.Eventually(t, "a look less than 3 s after the one before", func() bool {
		select {
		case next := <-looks:
			gap := next.Sub(last)
			last = next
			return gap < 3*time.Second
		default:
			return false
		}
	})
}

// TestUDPCheckArrives: 0.6 dropped udp and the agent refused.
func TestUDPCheckArrives(t *testing.T) {
	t.Parallel()
	w, err := workload.New(&config.Config{
		Service: &config.Service{Name: "udp",
			Checks: []config.Check{{CheckID: "udp-check", Name: "u", UDP: "127.0.0.1:9",
				Interval: "10s", Timeout: "1s"}}},
		Proxy: &config.Proxy{PublicListenerPort: 20000},
	}, workload.Task{TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/default/udp"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := agentRegistrar(t, open.Require(t)).Register(context.Background(), "", w); err != nil {
		t.Fatal(err)
	}
	checks, err := client(t, open, "").Agent().Checks()
	if err != nil {
		t.Fatal(err)
	}
	if c := checks["udp-check"]; c == nil || c.Type != "udp" {
		t.Errorf("check = %+v", c)
	}
}

// TestProxyHasMeshWideDefaults: one GET suffices for the bootstrap. It has a
// separate server, because a change of defaults makes an agent register all
// proxies again.
func TestProxyHasMeshWideDefaults(t *testing.T) {
	t.Parallel()
	consul, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consul.Require(t).Stop)
	entries := client(t, consul, "").ConfigEntries()
	_, _, err = entries.Set(&api.ProxyConfigEntry{
		Kind: api.ProxyDefaults, Name: api.ProxyConfigGlobal,
		Config: map[string]any{"envoy_stats_bind_addr": "0.0.0.0:9999"},
		AccessLogs: &api.AccessLogsConfig{Enabled: true, Type: api.FileLogSinkType, Path: "/dev/null",
			TextFormat: "%START_TIME%"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := agentSubject(t, consul)
	w := s.Service(t, "defaults", "t1")
	if err := s.Registrar.Register(context.Background(), "", w); err != nil {
		t.Fatal(err)
	}
	p, err := s.Registrar.Proxy(context.Background(), "", w)
	if err != nil {
		t.Fatal(err)
	}
	if p.Config["envoy_stats_bind_addr"] != "0.0.0.0:9999" || p.Config["envoy_prometheus_bind_addr"] != "0.0.0.0:9102" {
		t.Errorf("config = %v", p.Config)
	}
	logs := &bootstrap.AccessLogs{Enabled: true, Type: "file", Path: "/dev/null", TextFormat: "%START_TIME%"}
	if diff := cmp.Diff(logs, p.AccessLogs); diff != "" {
		t.Errorf("access logs (-want +got):\n%s", diff)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

// TestAliasOfAServiceWithoutChecks: nothing ever changes in such a service, so
// its proxy must not wait for the alias's first change to reach the servers.
func TestAliasOfAServiceWithoutChecks(t *testing.T) {
	t.Parallel()
	s := agentSubject(t, open.Require(t))
	for i := range 40 {
		w, err := workload.New(&config.Config{
			Service: &config.Service{Name: "alias", Port: 9090},
			Proxy:   &config.Proxy{PublicListenerPort: 20000},
		}, workload.Task{TaskARN: fmt.Sprintf("arn:aws:ecs:us-west-2:123456789012:task/default/a%d", i)}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Registrar.Register(context.Background(), "", w); err != nil {
			t.Fatal(err)
		}
		alias := "service:" + w.Proxy.ID + ":2"
		if status, output, _ := s.Check(t, alias); status != "passing" {
			t.Errorf("instance %d: alias is %s %q", i, status, output)
		}
		s.Forget(t, w.Proxy.ID)
		s.Forget(t, w.ID)
	}
}
