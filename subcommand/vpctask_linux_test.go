package subcommand

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/servers"
	"github.com/meshtask/consul-ecs/workload"
)

// vpcMesh is Consul and AWS for tasks in a VPC.
type vpcMesh struct {
	*servers.VPC
	t       *testing.T
	admin   *api.Client
	cluster *servers.Cluster // nil with one server behind fronts
	consul  *testkit.Consul  // that server
	aws     *awstest.AWS
	tasks   *atomic.Int64
}

// permitSessions lets tasks have sessions.
func (m *vpcMesh) permitSessions() {
	m.t.Helper()
	policy, _, err := m.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: "session", Rules: sessionRule}, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	role := &api.ACLRole{Name: "session", Policies: []*api.ACLTokenPolicyLink{{ID: policy.ID}}}
	if _, _, err = m.admin.ACL().RoleCreate(role, nil); err != nil {
		m.t.Fatal(err)
	}
	rule := &api.ACLBindingRule{AuthMethod: "iam-ecs-service-token", BindType: "role", BindName: role.Name}
	if _, _, err := m.admin.ACL().BindingRuleCreate(rule, nil); err != nil {
		m.t.Fatal(err)
	}
}

// within returns the mesh for a subtest that runs alone at a time.
func (m *vpcMesh) within(t *testing.T) *vpcMesh {
	m.Use(t)
	of := *m
	of.t = t
	if m.cluster != nil {
		of.admin = m.cluster.Leader().Admin
	}
	return &of
}

// beside returns the mesh for a subtest that runs in parallel with others, in its own VPC.
func (m *vpcMesh) beside(t *testing.T) *vpcMesh {
	of := *m
	of.t, of.VPC = t, servers.NewVPC(t)
	return &of
}

// newVPCMesh starts three real servers.
func newVPCMesh(t *testing.T) *vpcMesh {
	t.Helper()
	m := &vpcMesh{t: t, VPC: servers.NewVPC(t), aws: newRole(t), tasks: new(atomic.Int64)}
	m.cluster = m.Start(3, "consul")
	m.admin = m.cluster.Leader().Admin
	// Servers reach nothing outside of the VPC.
	gateway := m.Gateway()
	l, err := gateway.Listen("tcp", gateway.IP.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	within := &http.Server{Handler: forward(t, m.aws.URL)}
	t.Cleanup(func() { within.Close() })
	go within.Serve(l)
	m.prepare("http://" + l.Addr().String())
	return m
}

// newFrontMesh starts one server, which any number of fronts pass requests on to.
func newFrontMesh(t *testing.T, o testkit.ConsulOptions) *vpcMesh {
	t.Helper()
	o.ACL = true
	c, err := testkit.StartConsul(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	m := &vpcMesh{t: t, VPC: servers.NewVPC(t), aws: newRole(t), tasks: new(atomic.Int64), consul: c}
	if m.admin, err = consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token}); err != nil {
		t.Fatal(err)
	}
	m.prepare(m.aws.URL)
	return m
}

func newRole(t *testing.T) *awstest.AWS {
	t.Helper()
	return awstest.New(t, awstest.Role{Account: "111122223333", Path: "/consul-ecs/", Name: "role"})
}

func forward(t *testing.T, to string) http.Handler {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(target)
}

// prepare makes what the operator and the controller make. The servers reach AWS at the URL.
func (m *vpcMesh) prepare(aws string) {
	m.t.Helper()
	createLogin(m.t, m.admin, &awstest.AWS{URL: aws})
	node := &api.CatalogRegistration{Node: noAgentCluster, Address: "10.0.0.1"}
	if _, err := m.admin.Catalog().Register(node, nil); err != nil {
		m.t.Fatal(err)
	}
	intention := &api.ServiceIntentionsConfigEntry{
		Kind: api.ServiceIntentions, Name: "web",
		Sources: []*api.SourceIntention{{Name: "web", Action: api.IntentionActionAllow}},
	}
	testkit.Eventually(m.t, "a new leader takes intentions", func() bool {
		_, _, err := m.admin.ConfigEntries().Set(intention, nil)
		return err == nil
	})
}

// vpcTask is a task without an agent, with login, on its own machine.
type vpcTask struct {
	*vpcMesh
	host     *servers.Host
	metadata *metadata
	dir, id  string
	vars     []string
	relay    testkit.Log // of envoy-entrypoint
	health   testkit.Log // of health-sync
}

const (
	vpcTaskDoc = `{"Name":%[1]q,"Cluster":"mesh",` +
		`"TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/%[2]s","Family":"web",` +
		`"DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Containers":[` +
		`{"Name":"app","Type":"NORMAL","DesiredStatus":%[4]q,"KnownStatus":%[4]q,` +
		`"Health":{"status":%[5]q},"Networks":[{"IPv4Addresses":[%[3]q]}]},` +
		`{"Name":"sidecar-proxy","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING",` +
		`"Health":{"status":"HEALTHY"}},` +
		`{"Name":"consul-ecs-health-sync","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING"},` +
		`{"Name":"consul-ecs-mesh-init","Type":"NORMAL","DesiredStatus":"STOPPED","KnownStatus":"STOPPED","ExitCode":0}]}`
	vpcTaskAdmin    = "http://127.0.0.1:19000"
	vpcTaskUpstream = "http://127.0.0.1:5000/" // the task itself, through the mesh
	vpcTaskPort     = 8080
)

// task adds a task that knows these servers, and runs its mesh-init.
func (m *vpcMesh) task(watch bool, addresses ...string) *vpcTask {
	m.t.Helper()
	return m.taskWith(nil, watch, addresses...)
}

// taskWith sets further variables.
func (m *vpcMesh) taskWith(vars []string, watch bool, addresses ...string) *vpcTask {
	m.t.Helper()
	number := m.tasks.Add(1)
	k := &vpcTask{
		vpcMesh: m, host: m.Host(fmt.Sprintf("task-%d", number)),
		dir: m.t.TempDir(), id: fmt.Sprintf("%032x", number),
	}
	l, err := k.host.ListenMetadata()
	if err != nil {
		m.t.Fatal(err)
	}
	k.metadata = newMetadataAt(m.t, l)
	k.container("RUNNING", "HEALTHY")
	k.know(addresses...)
	doc := fmt.Sprintf(`{"bootstrapDir":%q,
"consulServers":{"hosts":"exec=cat %s","skipServerWatch":%t,"defaults":{"tls":false},
	"http":{"port":%d,"https":false},"grpc":{"port":%d}},
"consulLogin":{"enabled":true},"service":{"name":"web","port":%d},
"transparentProxy":{"enabled":false},"healthSyncContainers":["app"],
"proxy":{"mode":"direct","upstreams":[
	{"destinationName":"web","localBindPort":5000},{"destinationName":"api","localBindPort":5001}]}}`,
		k.dir, k.hosts(), !watch, servers.HTTPPort, servers.GRPCPort, vpcTaskPort)
	k.vars = []string{
		"CONSUL_ECS_CONFIG_JSON=" + doc, "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.2/creds",
		"AWS_ACCESS_KEY_ID=", "AWS_CA_BUNDLE=", "AWS_CONFIG_FILE=/nonexistent",
		"AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
	}
	k.vars = append(k.vars, vars...)
	exits(m.t, k.run("consul-ecs-mesh-init", nil, "mesh-init"), 0)
	return k
}

func (k *vpcTask) hosts() string { return filepath.Join(k.dir, "hosts") }

// know changes what the task finds when it discovers servers.
func (k *vpcTask) know(addresses ...string) {
	k.t.Helper()
	temporary := k.hosts() + ".new"
	err := os.WriteFile(temporary, []byte(strings.Join(addresses, "\n")), 0o600)
	if err := errors.Join(err, os.Rename(temporary, k.hosts())); err != nil {
		k.t.Fatal(err)
	}
}

// container changes what the metadata say of the application.
func (k *vpcTask) container(status, health string) {
	credentials := forward(k.t, k.aws.URL)
	k.metadata.does(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/creds" {
			credentials.ServeHTTP(w, r)
			return
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v4/"), "/")
		fmt.Fprintf(w, vpcTaskDoc, name, k.id, k.host.IP, status, health)
	})
}

// run starts consul-ecs as a container of the task.
func (k *vpcTask) run(container string, log io.Writer, args ...string) *testkit.Process {
	k.t.Helper()
	env := append([]string{"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/" + container}, k.vars...)
	return k.host.Run(testkit.ProcessOptions{Env: env, Stderr: log}, testkit.SelfArgs("consul-ecs", args...)...)
}

// healthSync starts it, and waits until the task passes.
func (k *vpcTask) healthSync() *testkit.Process {
	k.t.Helper()
	p := k.run("consul-ecs-health-sync", &k.health, "health-sync")
	logAtFailure(k.t, k.id+" health-sync", &k.health)
	testkit.Eventually(k.t, "the task passes", func() bool { return k.status() == api.HealthPassing })
	return p
}

// envoy starts it, below envoy-entrypoint.
func (k *vpcTask) envoy() *testkit.Process {
	k.t.Helper()
	p := k.run("sidecar-proxy", &k.relay, "envoy-entrypoint", testkit.RequireBinary(k.t, "envoy"),
		"--config-path", filepath.Join(k.dir, workload.FileBootstrap),
		"--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	logAtFailure(k.t, k.id+" envoy-entrypoint", &k.relay)
	return p
}

func logAtFailure(t *testing.T, name string, log *testkit.Log) {
	t.Cleanup(func() {
		if t.Failed() {
			text := log.String()
			t.Logf("%s: %s", name, text[max(0, len(text)-4000):])
		}
	})
}

// status returns the status of the application's check in Consul, empty without one.
func (k *vpcTask) status() string {
	checks, _, err := k.admin.Health().Checks("web", nil)
	if err != nil {
		return err.Error()
	}
	for _, c := range checks {
		if c.CheckID == workload.CatalogCheckID(k.serviceID(), "app") {
			return c.Status
		}
	}
	return ""
}

func (k *vpcTask) serviceID() string { return workload.ServiceID("web", k.id) }

// get returns the status of an answer in the task, or 0, and its body.
func (k *vpcTask) get(url string) (status int, body string) {
	client := k.host.Client()
	client.Timeout = time.Second
	resp, err := client.Get(url)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// live reports whether Envoy has all that it needs to serve.
func (k *vpcTask) live() bool {
	status, body := k.get(vpcTaskAdmin + "/ready")
	return status == http.StatusOK && strings.HasPrefix(body, "LIVE") && k.has("public_listener")
}

// has reports whether Envoy has a listener whose name begins so.
func (k *vpcTask) has(listener string) bool {
	_, body := k.get(vpcTaskAdmin + "/listeners")
	return strings.HasPrefix(body, listener+":") || strings.Contains(body, "\n"+listener+":")
}

// endpoint reports whether Envoy has an instance of an upstream.
func (k *vpcTask) endpoint(address string) bool {
	_, body := k.get(vpcTaskAdmin + "/clusters")
	return strings.Contains(body, "::"+address+"::")
}

// streams returns how often the relay had a stream of the server.
func (k *vpcTask) streams(address string) int {
	return strings.Count(k.relay.String(), fmt.Sprintf("xDS stream established: address=%s:%d", address,
		servers.GRPCPort))
}

// accessor returns that of the token of the task's login.
func (k *vpcTask) accessor() string {
	k.t.Helper()
	secret, err := os.ReadFile(filepath.Join(k.dir, workload.FileServiceToken))
	if err != nil {
		k.t.Fatal(err)
	}
	token, _, err := k.admin.ACL().TokenReadSelf(&api.QueryOptions{Token: string(secret)})
	if err != nil {
		k.t.Fatal(err)
	}
	return token.AccessorID
}

// passes reports whether the task is in traffic.
func (k *vpcTask) passes() bool {
	entries, _, err := k.admin.Health().Service("web", "", true, nil)
	own := func(e *api.ServiceEntry) bool { return e.Service.ID == k.serviceID() }
	return err == nil && slices.ContainsFunc(entries, own)
}

// serveApplication answers as the application until stop is called.
func (k *vpcTask) serveApplication() (stop func()) {
	k.t.Helper()
	l, err := k.host.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", vpcTaskPort))
	if err != nil {
		k.t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	k.t.Cleanup(func() { s.Close() })
	go s.Serve(l)
	return func() { s.Close() }
}

// answers reports whether a request reaches the application through the mesh.
func (k *vpcTask) answers() bool {
	status, _ := k.get(vpcTaskUpstream)
	return status == http.StatusNotFound
}

// killEnvoy kills the child of envoy-entrypoint.
func (k *vpcTask) killEnvoy(entrypoint *testkit.Process) {
	k.t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", entrypoint.PID))
	if err != nil {
		k.t.Fatal(err)
	}
	var children string
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // a thread may have ended
		children += string(text)
	}
	var pid int
	if _, err := fmt.Sscan(children, &pid); err != nil {
		k.t.Fatalf("the child of envoy-entrypoint: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		k.t.Fatal(err)
	}
}
