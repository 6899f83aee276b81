package subcommand

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/servers"
)

// TestTaskOutlivesServerEvents: one event after another at three real servers.
func TestTaskOutlivesServerEvents(t *testing.T) {
	t.Parallel()
	m := newVPCMesh(t)
	for _, event := range []struct {
		name string
		long bool
		test func(*vpcMesh)
	}{
		{"a paused follower resumes", false, testPausedFollower},
		{"a new task begins at a follower without its peers", false, testNewTaskAtCutFollower},
		{"a running Envoy has its stream at a follower without its peers", true, testEnvoyAtCutFollower},
		{"a server freezes", true, testFrozenServer},
		{"Envoy is killed while no server answers", false, testEnvoyKilled},
		{"the servers restart one by one", true, testRollingRestart},
		{"all servers are replaced", false, testFullReplacement},
	} {
		t.Run(event.name, func(t *testing.T) {
			if event.long {
				testkit.Long(t)
			}
			event.test(m.within(t))
		})
	}
}

// testPausedFollower: a write that was with a paused server, and was made at another one since, is applied
// later.
func testPausedFollower(m *vpcMesh) {
	follower := m.cluster.Follower()
	k := m.task(true, follower.IP.String())
	k.healthSync()
	set := func(health, status string) {
		k.container("RUNNING", health)
		testkit.Eventually(m.t, "the check is "+status, func() bool { return k.status() == status })
	}
	set("UNHEALTHY", api.HealthCritical)
	follower.Pause()
	resumed := false
	defer func() {
		if !resumed {
			follower.Resume()
		}
	}()
	set("HEALTHY", api.HealthPassing)
	set("UNHEALTHY", api.HealthCritical)
	if !strings.Contains(k.health.String(), "moved to another Consul server") {
		m.t.Log("no write was with the paused server, so none is applied late")
	}
	resumed = true
	follower.Resume()
	watched := 35 * time.Second // past health-sync's next look at its checks
	if testing.Short() {
		watched = 8 * time.Second
	}
	wrong, total := time.Duration(0), time.Now()
	for last := time.Now(); time.Since(total) < watched; <-time.After(20 * time.Millisecond) {
		status := k.status()
		now := time.Now()
		if status != api.HealthCritical {
			wrong += now.Sub(last)
		}
		last = now
	}
	m.t.Logf("wrong status for %s, want 2 s at most", wrong.Round(10*time.Millisecond))
	if wrong > 2*time.Second+busy {
		m.t.Errorf("wrong status for %s", wrong)
	}
}

// cut cuts a follower off from its peers, and waits until it has no leader.
func (m *vpcMesh) cut(follower *servers.Server) (heal func()) {
	m.t.Helper()
	heal = follower.Isolate()
	testkit.Eventually(m.t, "the follower has no leader", func() bool {
		leader, err := follower.Admin.Status().Leader()
		return err == nil && leader == ""
	})
	return heal
}

func testNewTaskAtCutFollower(m *vpcMesh) {
	follower := m.cluster.Follower()
	defer m.cut(follower)()
	m.admin = m.cluster.Leader().Admin
	// The follower knows this token; that of a login it would refuse, which sends the relay on at once.
	k := m.taskWith([]string{"CONSUL_HTTP_TOKEN=" + testkit.ManagementToken}, true, m.cluster.Addresses()...)
	k.know(follower.IP.String())
	k.envoy()
	meet(m.t, aim{15 * time.Second, "the new task's Envoy is live", k.live})
}

// instance registers an instance of the upstream api.
func (m *vpcMesh) instance(address string) {
	m.t.Helper()
	for _, service := range []*api.AgentService{
		{ID: "api-" + address, Service: "api", Port: 80},
		{
			ID: "api-proxy-" + address, Service: "api-sidecar-proxy", Kind: api.ServiceKindConnectProxy, Port: 20000,
			Proxy: &api.AgentServiceConnectProxyConfig{DestinationServiceName: "api",
				DestinationServiceID: "api-" + address},
		},
	} {
		r := &api.CatalogRegistration{Node: "api-" + address, Address: address, Service: service}
		// A leader that is just elected, or just replaced, may refuse a write.
		testkit.Eventually(m.t, "register "+service.ID, func() bool {
			_, err := m.admin.Catalog().Register(r, nil)
			return err == nil
		})
	}
}

func testEnvoyAtCutFollower(m *vpcMesh) {
	follower := m.cluster.Follower()
	m.instance("10.99.0.1")
	k := m.task(true, follower.IP.String())
	k.envoy()
	testkit.Eventually(m.t, "envoy has the first instance", func() bool { return k.endpoint("10.99.0.1:20000") })
	if !k.streamAt(follower) {
		m.t.Fatal("the stream is not at the follower")
	}
	heal := follower.Isolate()
	defer heal()
	m.admin = m.cluster.Leader().Admin
	m.instance("10.99.0.2")
	meet(m.t, aim{45 * time.Second, "envoy has the next instance",
		func() bool { return k.endpoint("10.99.0.2:20000") }})
}

func testFrozenServer(m *vpcMesh) {
	follower := m.cluster.Follower()
	k := m.task(true, follower.IP.String())
	k.envoy()
	testkit.Eventually(m.t, "envoy is live", k.live)
	if !k.streamAt(follower) {
		m.t.Fatal("the stream is not at the follower")
	}
	follower.Pause()
	defer follower.Resume()
	meet(m.t, aim{12 * time.Second, "the stream is at another server", func() bool {
		return k.streamAt(follower.Others()...)
	}})
}

// streamAt reports whether the relay had a stream of one of the servers.
func (k *vpcTask) streamAt(set ...*servers.Server) bool {
	return slices.ContainsFunc(set, func(s *servers.Server) bool { return k.streams(s.IP.String()) > 0 })
}

// testEnvoyKilled: Envoy's start is work for the processor, so beside other tests its limit is in proportion to
// its first start.
func testEnvoyKilled(m *vpcMesh) {
	k := m.task(true, m.cluster.Addresses()...)
	k.serveApplication()
	begin := time.Now()
	entrypoint := k.envoy()
	testkit.Eventually(m.t, "envoy is live", k.live)
	first := time.Since(begin)
	k.healthSync()
	testkit.Eventually(m.t, "the task answers", k.answers)
	for _, s := range m.cluster.Servers {
		defer k.host.CutFrom(s.Host)()
	}
	k.killEnvoy(entrypoint)
	testkit.Eventually(m.t, "envoy is dead", func() bool { return !k.answers() })
	meet(m.t, aim{max(2*time.Second, 2*first), "the task answers again", k.answers})
}

// testRollingRestart: a task is in traffic all the time, and its Envoy gets what changes.
func testRollingRestart(m *vpcMesh) {
	k := m.task(true, m.cluster.Addresses()...)
	k.envoy()
	k.healthSync()
	testkit.Eventually(m.t, "envoy is live", k.live)
	for i, s := range m.cluster.Servers {
		s.Kill()
		m.admin = m.cluster.Leader().Admin
		for _, change := range [][2]string{{"UNHEALTHY", api.HealthCritical}, {"HEALTHY", api.HealthPassing}} {
			k.container("RUNNING", change[0])
			meet(m.t, aim{10 * time.Second, "the check is " + change[1],
				func() bool { return k.status() == change[1] }})
		}
		address := fmt.Sprintf("10.99.1.%d", i)
		m.instance(address)
		meet(m.t, aim{10 * time.Second, "envoy has an instance", func() bool { return k.endpoint(address + ":20000") }})
		s.Restart()
	}
}

// testFullReplacement: three servers with new addresses join, and the addresses of the old ones drop at one
// moment; then they leave.
func testFullReplacement(m *vpcMesh) {
	k := m.task(true, m.cluster.Addresses()...)
	k.envoy()
	k.healthSync()
	testkit.Eventually(m.t, "envoy is live", k.live)
	old := append([]*servers.Server(nil), m.cluster.Servers...)
	joined := m.cluster.Join(3)
	var replacement []string
	for _, s := range joined {
		replacement = append(replacement, s.IP.String())
	}
	for _, s := range old {
		k.host.CutFrom(s.Host)
	}
	k.know(replacement...)
	k.container("RUNNING", "UNHEALTHY")
	meet(m.t,
		aim{10 * time.Second, "the check is critical", func() bool { return k.status() == api.HealthCritical }},
		aim{10 * time.Second, "the stream is at a new server", func() bool { return k.streamAt(joined...) }},
	)
	if testing.Short() {
		return
	}
	for _, s := range old {
		s.Leave()
	}
	m.admin = m.cluster.Leader().Admin
	k.container("RUNNING", "HEALTHY")
	meet(m.t, aim{10 * time.Second, "the check passes", func() bool { return k.status() == api.HealthPassing }})
}
