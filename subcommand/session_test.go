package subcommand

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// boundTask is a task without an agent whose containers are healthy.
type boundTask struct {
	t     *testing.T
	admin *api.Client
	w     workload.Workload
	env   []string
	link  *link
}

// link is a connection to the servers that can be cut: packets are lost then, and no
// connection ends.
type link struct {
	net.Listener
	cut   atomic.Bool
	mu    sync.Mutex
	conns []net.Conn
}

func newLink(t *testing.T, address string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{Listener: l}
	keep := func(c net.Conn) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.conns = append(k.conns, c)
	}
	t.Cleanup(func() {
		l.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, c := range k.conns {
			c.Close()
		}
	})
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			keep(here)
			there, err := net.Dial("tcp", address)
			if err != nil {
				here.Close()
				continue
			}
			keep(there)
			go k.copy(there, here)
			go k.copy(here, there)
		}
	}()
	return k
}

// copy ends with one of the connections, and then the other, unless the link is cut.
func (k *link) copy(to, from net.Conn) {
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if k.cut.Load() {
			io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			_, failed := to.Write(buffer[:n])
			if err == nil {
				err = failed
			}
		}
		if err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

const (
	boundCluster = "arn:aws:ecs:us-west-2:111122223333:cluster/mesh"
	boundTaskDoc = `{"Name":"consul-ecs-health-sync","Cluster":"` + boundCluster +
		`","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a","Family":"web","Containers":[
{"Name":"app","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Health":{"status":"HEALTHY"},"Networks":[{"IPv4Addresses":["10.0.0.9"]}]},
{"Name":"consul-dataplane","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Health":{"status":"HEALTHY"}},
{"Name":"consul-ecs-health-sync","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING"}]}`
	// sessionRule is what a task's token needs beside its service identity.
	sessionRule = `session "` + boundCluster + `" { policy = "write" }`
)

// newBoundTask registers the task as mesh-init does. Its token has the service identity of
// a login, and these rules.
func newBoundTask(t *testing.T, c *testkit.Consul, service, rules string) *boundTask {
	t.Helper()
	admin, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	token := &api.ACLToken{ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: service}}}
	if rules != "" {
		policy, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: service, Rules: rules}, nil)
		if err != nil {
			t.Fatal(err)
		}
		token.Policies = []*api.ACLTokenPolicyLink{{ID: policy.ID}}
	}
	if token, _, err = admin.ACL().TokenCreate(token, nil); err != nil {
		t.Fatal(err)
	}
	k := &boundTask{t: t, admin: admin, link: newLink(t, c.HTTPAddr)}
	host, port, err := net.SplitHostPort(k.link.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	doc := fmt.Sprintf(`{"bootstrapDir":%q,"consulServers":{"hosts":%q,"skipServerWatch":true,"defaults":{"tls":false},"http":{"port":%s,"https":false}},
"service":{"name":%q,"port":8080},"proxy":{},"healthSyncContainers":["app"]}`, t.TempDir(), host, port, service)
	cfg, _, err := config.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	known, err := workload.ParseTask([]byte(boundTaskDoc))
	if err != nil {
		t.Fatal(err)
	}
	if k.w, err = workload.New(cfg, known, ""); err != nil {
		t.Fatal(err)
	}
	// As the controller makes it.
	if _, err := admin.Catalog().Register(&api.CatalogRegistration{Node: boundCluster, Address: "10.0.0.1",
		SkipNodeUpdate: true}, nil); err != nil {
		t.Fatal(err)
	}
	if err := registrar.New(cfg, admin).Register(t.Context(), "", k.w); err != nil {
		t.Fatal(err)
	}
	m := newMetadata(t)
	m.says(200, boundTaskDoc)
	k.env = append(m.env(), "CONSUL_ECS_CONFIG_JSON="+doc, "CONSUL_HTTP_TOKEN="+token.SecretID)
	return k
}

// healthSync starts it and waits until service and proxy are in traffic.
func (k *boundTask) healthSync() *testkit.Process {
	k.t.Helper()
	p := consulECS(k.t, k.env, "health-sync", "-start-timeout=0", "-stop-timeout=20s")
	testkit.Eventually(k.t, "service and proxy are in traffic", func() bool { return k.inTraffic() == 2 })
	return p
}

// inTraffic returns how many of service and proxy have passing checks only.
func (k *boundTask) inTraffic() int {
	k.t.Helper()
	n := 0
	for _, name := range []string{k.w.Name, k.w.Proxy.Name} {
		found, _, err := k.admin.Health().Service(name, "", true, nil)
		if err != nil {
			k.t.Fatal(err)
		}
		n += len(found)
	}
	return n
}

// sessions returns those of the task.
func (k *boundTask) sessions() (ids []string) {
	k.t.Helper()
	all, _, err := k.admin.Session().Node(boundCluster, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.Name, k.w.ID) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// sessionChecks returns the statuses of the task's session checks.
func (k *boundTask) sessionChecks() (statuses []string) {
	k.t.Helper()
	checks, _, err := k.admin.Health().Node(boundCluster, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, c := range checks {
		if c.Type == "session" && (c.ServiceID == k.w.ID || c.ServiceID == k.w.Proxy.ID) {
			statuses = append(statuses, c.Status)
		}
	}
	return statuses
}

// newest starts a server of the newest version with ACLs. It does not write its own
// network coordinates.
func newest(t *testing.T) *testkit.Consul {
	t.Helper()
	testkit.Long(t)
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true, Newest: true, HCL: "disable_coordinates = true"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	return c
}

// bound is the longest time that a task stays in traffic without health-sync, and slack
// how late servers and test may be on a busy machine.
const (
	bound = 30 * time.Second
	slack = 15 * time.Second
)

// TestTaskLeavesTrafficWithoutHealthSync: the task leaves traffic within the bound, however
// its health-sync fails, and not before a renewal may have been lost; it is back when a
// health-sync runs again.
func TestTaskLeavesTrafficWithoutHealthSync(t *testing.T) {
	t.Parallel()
	c := newest(t)
	for name, fault := range map[string]struct {
		harm, heal func(*boundTask, *testkit.Process)
	}{
		"killed": {
			func(_ *boundTask, p *testkit.Process) { p.Signal(syscall.SIGKILL) },
			func(k *boundTask, _ *testkit.Process) { k.healthSync() },
		},
		"frozen": {
			func(_ *boundTask, p *testkit.Process) { p.Signal(syscall.SIGSTOP) },
			func(_ *boundTask, p *testkit.Process) { p.Signal(syscall.SIGCONT) },
		},
		"partitioned": {
			func(k *boundTask, _ *testkit.Process) { k.link.cut.Store(true) },
			func(k *boundTask, _ *testkit.Process) { k.link.cut.Store(false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newBoundTask(t, c, "web-"+name, sessionRule)
			p := k.healthSync()
			fault.harm(k, p)
			took := testkit.Within(t, bound+slack, "the task has left traffic",
				func() bool { return k.inTraffic() == 0 })
			t.Logf("%s: left traffic after %s", name, took.Round(100*time.Millisecond))
			if took < bound/3 {
				t.Errorf("left after %s, when one lost renewal is enough", took)
			}
			fault.heal(k, p)
			back := testkit.Within(t, bound+slack, "the task is back", func() bool { return k.inTraffic() == 2 })
			t.Logf("%s: back after %s", name, back.Round(100*time.Millisecond))
		})
	}
}

// raftIndex returns the last index of the server's log.
func raftIndex(t *testing.T, c *testkit.Consul) int {
	t.Helper()
	admin, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	if err != nil {
		t.Fatal(err)
	}
	self, err := admin.Agent().Self()
	if err != nil {
		t.Fatal(err)
	}
	index, err := strconv.Atoi(fmt.Sprint(self["Stats"]["raft"].(map[string]any)["last_log_index"]))
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestIdleSessionCausesNoWrite: for a minute, with four renewals, the log of the server with
// a task grows as that of one without.
func TestIdleSessionCausesNoWrite(t *testing.T) {
	t.Parallel()
	c, idle := newest(t), newest(t)
	k := newBoundTask(t, c, "web", sessionRule)
	k.healthSync()
	sessions, before, idleBefore := k.sessions(), raftIndex(t, c), raftIndex(t, idle)
	<-time.After(time.Minute)
	if now := k.sessions(); len(now) != 1 || now[0] != sessions[0] {
		t.Errorf("sessions %v, were %v", now, sessions)
	}
	with, without := raftIndex(t, c)-before, raftIndex(t, idle)-idleBefore
	t.Logf("the log grew by %d entries, without a task by %d", with, without)
	if with > without+1 { // one that either writes once in a while
		t.Errorf("the log grew by %d entries, without a task by %d", with, without)
	}
}

// TestSessionIsReplacedAndEnds: a lost session is replaced, and TERM leaves none.
func TestSessionIsReplacedAndEnds(t *testing.T) {
	t.Parallel()
	k := newBoundTask(t, newest(t), "web", sessionRule)
	p := k.healthSync()
	lost := k.sessions()
	if len(lost) != 1 {
		t.Fatalf("sessions %v", lost)
	}
	if _, err := k.admin.Session().Destroy(lost[0], nil); err != nil {
		t.Fatal(err)
	}
	if n := k.inTraffic(); n != 0 && len(k.sessions()) == 0 {
		t.Errorf("%d of service and proxy in traffic without a session", n)
	}
	back := testkit.Within(t, bound+slack, "the task is back", func() bool { return k.inTraffic() == 2 })
	t.Logf("back after %s", back.Round(100*time.Millisecond))
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	if left := k.sessions(); len(left) > 0 || k.inTraffic() > 0 {
		t.Errorf("sessions %v are left, or services", left)
	}
}

// TestTaskWithoutSession: a task whose token may have no session, or whose servers know no
// session checks, is in traffic all the same, and takes off what a former health-sync with
// a session has left.
func TestTaskWithoutSession(t *testing.T) {
	t.Parallel()
	t.Run("not permitted", func(t *testing.T) {
		t.Parallel()
		k := newBoundTask(t, newest(t), "web", "")
		leaveSessionCheck(k)
		k.healthSync()
		if checks, sessions := k.sessionChecks(), k.sessions(); len(checks) > 0 || len(sessions) > 0 {
			t.Errorf("session checks %v, sessions %v", checks, sessions)
		}
	})
	t.Run("old servers", func(t *testing.T) {
		t.Parallel()
		c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Require(t).Stop)
		k := newBoundTask(t, c, "web", sessionRule)
		leaveSessionCheck(k)
		k.healthSync()
		if checks, sessions := k.sessionChecks(), k.sessions(); len(checks) > 0 || len(sessions) > 0 {
			t.Errorf("session checks %v, sessions %v", checks, sessions)
		}
	})
}

// leaveSessionCheck leaves the critical check of a session that has ended.
func leaveSessionCheck(k *boundTask) {
	k.t.Helper()
	_, err := k.admin.Catalog().Register(&api.CatalogRegistration{Node: boundCluster, SkipNodeUpdate: true,
		Checks: api.HealthChecks{{
			Node: boundCluster, CheckID: workload.SessionCheckID(k.w.ID), Name: "left", Status: "critical",
			ServiceID: k.w.ID, Type: "session",
			Definition: api.HealthCheckDefinition{SessionName: "ended"},
		}}}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
}
