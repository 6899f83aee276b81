package subcommand

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	clientMethod    = "iam-ecs-client-token"
	clientGossipKey = "SpqUdNPPBSYDMaXUKJ4Z9sZC8BKCAbNuV6NpyVZ3yQM="
)

// clientWorld is a Consul with ACLs and gossip encryption that trusts a role.
type clientWorld struct {
	*testkit.Consul
	admin *api.Client
	aws   *awstest.AWS
	// join is the server's gossip address, rpc its RPC port, which auto-encrypt
	// asks before there is gossip.
	join, rpc string
}

func newClientWorld(t *testing.T, hcl string) *clientWorld {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true,
		HCL: fmt.Sprintf("encrypt = %q\n", clientGossipKey) + hcl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	w := &clientWorld{Consul: c, aws: awstest.New(t, awstest.Role{Account: "111122223333", Path: "/consul-ecs/",
		Name: "role"})}
	if w.admin, err = consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token}); err != nil {
		t.Fatal(err)
	}
	self, err := w.admin.Agent().Members(false)
	if err != nil {
		t.Fatal(err)
	}
	w.join, w.rpc = fmt.Sprintf("%s:%d", self[0].Addr, self[0].Port), self[0].Tags["port"]
	acl := w.admin.ACL()
	_, _, err = acl.PolicyCreate(&api.ACLPolicy{Name: "client",
		Rules: `node_prefix "" { policy = "write" } service_prefix "" { policy = "read" }`}, nil)
	if err == nil {
		_, _, err = acl.RoleCreate(&api.ACLRole{Name: "client", Policies: []*api.ACLRolePolicyLink{{Name: "client"}}},
			nil)
	}
	if err == nil {
		_, _, err = acl.AuthMethodCreate(&api.ACLAuthMethod{Name: clientMethod, Type: "aws-iam", Config: map[string]any{
			"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::111122223333:role/consul-ecs/*"},
			"EnableIAMEntityDetails": true,
			"STSEndpoint":            w.aws.URL, "IAMEndpoint": w.aws.URL,
		}}, nil)
	}
	if err == nil {
		_, _, err = acl.BindingRuleCreate(&api.ACLBindingRule{AuthMethod: clientMethod, BindType: "role",
			BindName: "client"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tokens counts those of the clients' auth method.
func (w *clientWorld) tokens(t *testing.T) int {
	t.Helper()
	list, _, err := w.admin.ACL().TokenList(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, token := range list {
		if token.AuthMethod == clientMethod {
			n++
		}
	}
	return n
}

// member returns the gossip status of a node: alive, left, failed or absent.
func (w *clientWorld) member(t *testing.T, node string) string {
	t.Helper()
	members, err := w.admin.Agent().Members(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Name == node {
			return map[int]string{1: "alive", 2: "leaving", 3: "left", 4: "failed"}[m.Status]
		}
	}
	return "absent"
}

// clientTask is one task's consul-client.
type clientTask struct {
	*clientWorld
	m         *metadata
	dir, node string
	// http is where the agent listens, by the user's own configuration.
	http string
	env  []string
}

// clientContainers returns the task's metadata with an address.
func clientContainers(answer string) string {
	return strings.Replace(answer, `"Name":"consul-client"`,
		`"Networks":[{"IPv4Addresses":["127.0.0.1"]}],"Name":"consul-client"`, 1)
}

var allStopped = clientContainers(strings.NewReplacer(`"KnownStatus":"RUNNING"`, `"KnownStatus":"STOPPED"`,
	`"DesiredStatus":"RUNNING"`, `"DesiredStatus":"STOPPED"`).Replace(stopped))

func (w *clientWorld) task(t *testing.T, node string) *clientTask {
	t.Helper()
	ports, err := testkit.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	s := &clientTask{clientWorld: w, m: newMetadata(t), dir: t.TempDir(), node: node,
		http: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	s.m.says(http.StatusOK, clientContainers(task("RUNNING", "RUNNING", "RUNNING")))
	s.env = append(s.m.env(),
		"CONSUL_ECS_CONFIG_JSON=", "CONSUL_HTTP_ADDR="+w.HTTPAddr, "CONSUL_RETRY_JOIN="+w.join,
		"CONSUL_GOSSIP_ENCRYPTION_KEY="+clientGossipKey,
		fmt.Sprintf("CONSUL_AGENT_CONFIGURATION=node_name = %q\npid_file = %q\nlog_level = "+
			"\"warn\"\ndisable_update_check = true\nports { http = %d grpc = %d serf_lan = %d server = %s dns = -1 }",
			node, filepath.Join(s.dir, "agent.pid"), ports[0], ports[1], ports[2], w.rpc),
		"AWS_CONTAINER_CREDENTIALS_FULL_URI="+w.aws.CredentialsURI(),
		"AWS_ACCESS_KEY_ID=", "AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent")
	return s
}

func (s *clientTask) start(t *testing.T, more ...string) *testkit.Process {
	t.Helper()
	args := append([]string{"client-entrypoint", "-acls", "-dir", s.dir, "-stop-timeout", "2m", "-consul-path",
		testkit.RequireBinary(t, "consul")}, more...)
	return consulECS(t, s.env, args...)
}

// joined waits until servers and agent know each other, and returns the agent's
// process number.
func (s *clientTask) joined(t *testing.T) int {
	t.Helper()
	// The servers may still know an agent that was killed: ask both sides.
	local := s.agent(t)
	testkit.Eventually(t, s.node+" is registered", func() bool {
		members, err := local.Agent().Members(false)
		if err != nil || len(members) < 2 {
			return false
		}
		node, _, err := s.admin.Catalog().Node(s.node, nil)
		return err == nil && node != nil && s.member(t, s.node) == "alive"
	})
	text, err := os.ReadFile(filepath.Join(s.dir, "agent.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// wantNothing checks that neither token nor file of ours is left.
func (s *clientTask) wantNothing(t *testing.T) {
	t.Helper()
	if n := s.tokens(t); n != 0 {
		t.Errorf("%d tokens left", n)
	}
	for _, name := range []string{"client-token", "client-token.owner", "consul-client/agent.json",
		"consul-client/extra.hcl"} {
		if _, err := os.Lstat(filepath.Join(s.dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestClientLeavesLast: a real agent joins with a real login, stays
// for the other containers after TERM, leaves, and is logged out after that.
func TestClientLeavesLast(t *testing.T) {
	t.Parallel()
	w := newClientWorld(t, "")
	s := w.task(t, "leaves-last")
	p := s.start(t)
	agent := s.joined(t)
	token, err := os.ReadFile(filepath.Join(s.dir, "client-token"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.PID, agent} {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || strings.Contains(string(line), string(token)) ||
			strings.Contains(string(line), clientGossipKey) {
			t.Errorf("command line %q, %v", line, err)
		}
	}
	read, _, err := w.admin.ACL().TokenReadSelf(&api.QueryOptions{Token: string(token)})
	if err != nil || !strings.Contains(read.Description,
		`"consul.hashicorp.com/task-id":"0f9de17a6465404e8b1b2356dc13c2f8"`) ||
		!strings.Contains(read.Description,
			`"consul.hashicorp.com/cluster":"arn:aws:ecs:us-west-2:111122223333:cluster/mesh"`) {
		t.Errorf("token = %+v, %v", read, err)
	}

	s.m.says(http.StatusOK, clientContainers(running))
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGTERM)
	s.m.reads(t, 3)
	// The agent serves the others where the user's configuration says.
	if self, err := s.agent(t).Agent().Self(); err != nil || self["Config"]["NodeName"] != s.node ||
		w.member(t, s.node) != "alive" {
		t.Errorf("agent %v, %v", self["Config"], err)
	}
	if n := w.tokens(t); n != 1 {
		t.Errorf("%d tokens while the others run", n)
	}

	s.m.says(http.StatusOK, allStopped)
	testkit.Eventually(t, "the agent has left", func() bool { return w.member(t, s.node) == "left" })
	exits(t, p, 0)
	s.wantNothing(t)
	if _, err := os.Lstat(filepath.Join(s.dir, "consul-client")); err == nil {
		t.Error("the agent's directory is left, with the gossip key")
	}
}

// agent returns a client of the task's own agent.
func (s *clientTask) agent(t *testing.T) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: s.http, Token: s.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// instances counts those of a service in the servers' catalog.
func (w *clientWorld) instances(t *testing.T, service string) int {
	t.Helper()
	list, _, err := w.admin.Catalog().Service(service, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestKilledClientAgentLosesItsTokenAndServices: without a signal its token is logged out and its
// services are deregistered. The next run registers them again.
func TestKilledClientAgentLosesItsTokenAndServices(t *testing.T) {
	t.Parallel()
	w := newClientWorld(t, "")
	s := w.task(t, "killed")
	p := s.start(t)
	agent := s.joined(t)
	if err := s.agent(t).Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the service is in the catalog", func() bool { return s.instances(t, "web") == 1 })
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	exits(t, p, 137)
	s.wantNothing(t)
	if n := s.instances(t, "web"); n != 0 {
		t.Errorf("%d services of a dead agent", n)
	}

	// Killed ourselves, we leave a token, which the next run logs out.
	p = s.start(t)
	s.joined(t)
	testkit.Eventually(t, "the service is there again", func() bool { return s.instances(t, "web") == 1 })
	p.Signal(syscall.SIGKILL)
	p.Wait()
	if n := w.tokens(t); n != 1 {
		t.Errorf("%d tokens after KILL", n)
	}
	s.m.says(http.StatusOK, allStopped)
	p = s.start(t)
	s.joined(t)
	if n := w.tokens(t); n != 1 {
		t.Errorf("%d tokens, want the second run's", n)
	}
	p.Signal(syscall.SIGINT)
	exits(t, p, 0)
	s.wantNothing(t)
}

func TestClientEntrypointReportsRefusals(t *testing.T) {
	t.Parallel()
	w := newClientWorld(t, "")
	broken := filepath.Join(t.TempDir(), "broken.hcl")
	if err := os.WriteFile(broken, []byte("ports { http = "), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		exit int
	}{
		"unknown auth method": {[]string{"-auth-method", "nope", "-start-timeout", "300ms"}, 3},
		"no consul program":   {[]string{"-consul-path", "/nonexistent/consul"}, 1},
		"no such file":        {[]string{"-agent-config-file", "/dev/null/x.hcl"}, 1},
		"broken file":         {[]string{"-agent-config-file", broken}, 1}, // as the agent says
		"no server":           {[]string{"-consul-http-addr", "127.0.0.1:1", "-start-timeout", "300ms"}, 3},
	} {
		s := w.task(t, "refused")
		if code := s.start(t, tc.args...).Wait(); code != tc.exit {
			t.Errorf("%s: exit code %d, want %d", name, code, tc.exit)
		}
		s.wantNothing(t)
	}
}

// TestTERMDuringTheClientsLogin: the token is made and its answer on
// the way when TERM comes.
func TestTERMDuringTheClientsLogin(t *testing.T) {
	t.Parallel()
	w := newClientWorld(t, "")
	s := w.task(t, "term")
	var process atomic.Pointer[testkit.Process]
	started, logins := make(chan struct{}), make(chan struct{}, 8)
	target, err := url.Parse("http://" + w.HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path == "/v1/acl/login" {
			<-started
			process.Load().Signal(syscall.SIGTERM)
			logins <- struct{}{}
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/acl/token/self" {
			<-r.Context().Done() // the start does not outrun a signal that is slow
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	p := s.start(t, "-consul-http-addr", front.URL)
	process.Store(p)
	close(started)
	exits(t, p, 3)
	if len(logins) != 1 {
		t.Errorf("%d logins, want one", len(logins))
	}
	s.wantNothing(t)
}
