package subcommand

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	noAgentTask = `{"Name":"consul-ecs-health-sync","Cluster":"mesh","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8",` +
		`"Family":"web","DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Containers":[` +
		`{"Name":"consul-ecs-health-sync","Type":"NORMAL","DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Networks":[{"IPv4Addresses":["10.0.0.9"]}]},` +
		`{"Name":"sidecar-proxy","Type":"NORMAL","DesiredStatus":"%[1]s","KnownStatus":"%[1]s","Health":{"status":"HEALTHY"}},` +
		`{"Name":"consul-ecs-mesh-init","Type":"NORMAL","DesiredStatus":"STOPPED","KnownStatus":"STOPPED","ExitCode":0}]}`
	noAgentCluster = "arn:aws:ecs:us-west-2:111122223333:cluster/mesh"
)

// noAgentWorld is a task without an agent, with login, on its own Consul, whose tokens
// live for ttl.
type noAgentWorld struct {
	*metadata
	t     testing.TB
	admin *api.Client
	dir   string
	vars  []string
}

func newNoAgentWorld(t testing.TB, ttl time.Duration) *noAgentWorld {
	t.Helper()
	return newNoAgentWorldAt(t, ttl, testkit.ConsulOptions{ACL: true})
}

// newNoAgentWorldAt starts another Consul, with ACLs.
func newNoAgentWorldAt(t testing.TB, ttl time.Duration, o testkit.ConsulOptions) *noAgentWorld {
	t.Helper()
	c, err := testkit.StartConsul(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	w := &noAgentWorld{metadata: newMetadata(t), t: t, dir: t.TempDir()}
	if w.admin, err = consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token}); err != nil {
		t.Fatal(err)
	}
	w.says(200, fmt.Sprintf(noAgentTask, "RUNNING"))
	aws := awstest.New(t, awstest.Role{Account: "111122223333", Path: "/consul-ecs/", Name: "role"})
	createLogin(t, w.admin, aws)
	method, _, err := w.admin.ACL().AuthMethodRead("iam-ecs-service-token", nil)
	if err != nil {
		t.Fatal(err)
	}
	method.MaxTokenTTL = ttl
	if _, _, err := w.admin.ACL().AuthMethodUpdate(method, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.admin.Catalog().Register(&api.CatalogRegistration{Node: noAgentCluster, Address: "10.0.0.1"},
		nil); err != nil {
		t.Fatal(err)
	}
	host, http, _ := net.SplitHostPort(c.HTTPAddr)
	_, grpc, _ := net.SplitHostPort(c.GRPCAddr)
	w.vars = append(w.env(),
		fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":%q,"consulServers":{"hosts":%q,"defaults":{"tls":false},"http":{"port":%s,"https":false},"grpc":{"port":%s}},`+
			`"consulLogin":{"enabled":true},"service":{"name":"web","port":8080},"proxy":{"mode":"direct"},"transparentProxy":{"enabled":false}}`, w.dir, host, http, grpc),
		"AWS_CONTAINER_CREDENTIALS_FULL_URI="+aws.CredentialsURI(),
		"AWS_ACCESS_KEY_ID=", "AWS_CA_BUNDLE=", "AWS_CONFIG_FILE=/nonexistent",
		"AWS_SHARED_CREDENTIALS_FILE=/nonexistent")
	return w
}

// start runs mesh-init and starts health-sync, whose check passes then.
func (w *noAgentWorld) start(vars ...string) *testkit.Process {
	w.t.Helper()
	exits(w.t, consulECS(w.t, append(w.vars, vars...), "mesh-init"), 0)
	p := consulECS(w.t, append(w.vars, vars...), "health-sync")
	testkit.Eventually(w.t, "the service passes", func() bool {
		found, _, err := w.admin.Health().Service("web", "", true, nil)
		return err == nil && len(found) == 1
	})
	return p
}

// stop ends the task; nothing of it is left in the catalog.
func (w *noAgentWorld) stop(p *testkit.Process) {
	w.t.Helper()
	w.says(200, fmt.Sprintf(noAgentTask, "STOPPED"))
	p.Signal(syscall.SIGTERM)
	exits(w.t, p, 0)
	if found, _, err := w.admin.Catalog().Service("web", "", nil); err != nil || len(found) > 0 {
		w.t.Errorf("left in the catalog: %v, %v", found, err)
	}
}

// logins returns the accessors of the tokens of logins.
func (w *noAgentWorld) logins() (accessors []string) {
	w.t.Helper()
	tokens, _, err := w.admin.ACL().TokenList(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, token := range tokens {
		if token.AuthMethod != "" {
			accessors = append(accessors, token.AccessorID)
		}
	}
	return accessors
}

// TestStaticTokenTakesThePlaceOfALogin: 0.10 tried to log it out at the end.
func TestStaticTokenTakesThePlaceOfALogin(t *testing.T) {
	t.Parallel()
	w := newNoAgentWorld(t, 0)
	static, _, err := w.admin.ACL().TokenCreate(&api.ACLToken{ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := w.start("CONSUL_HTTP_TOKEN=" + static.SecretID)
	if _, err := os.Stat(filepath.Join(w.dir, "service-token")); !os.IsNotExist(err) {
		t.Errorf("service-token: %v", err)
	}
	if relay, err := os.ReadFile(filepath.Join(w.dir, "xds-relay.json")); err != nil ||
		!strings.Contains(string(relay), static.SecretID) {
		t.Errorf("the relay presents another token: %v", err)
	}
	w.stop(p)
	if logins := w.logins(); len(logins) > 0 {
		t.Errorf("logins %v", logins)
	}
	if _, _, err := w.admin.ACL().TokenRead(static.AccessorID, nil); err != nil {
		t.Errorf("the static token is gone: %v", err)
	}
}

// TestDefinitionOfConsulECS010: mesh-init and consul-dataplane share a volume, health-sync
// has none and its own token, as every container had.
func TestDefinitionOfConsulECS010(t *testing.T) {
	t.Parallel()
	w := newNoAgentWorld(t, 0)
	for i, v := range w.vars {
		w.vars[i] = strings.Replace(v, `"proxy":{"mode":"direct"}`, `"proxy":{}`, 1)
	}
	task := strings.Replace(noAgentTask, "sidecar-proxy", "consul-dataplane", 1)
	w.says(200, fmt.Sprintf(task, "RUNNING"))
	exits(t, consulECS(t, w.vars, "mesh-init"), 0)
	meshInit := w.logins()
	for i, v := range w.vars {
		w.vars[i] = strings.Replace(v, w.dir, filepath.Join(w.dir, "unmounted"), 1)
	}
	p := consulECS(t, w.vars, "health-sync")
	testkit.Eventually(t, "the service passes", func() bool {
		found, _, err := w.admin.Health().Service("web", "", true, nil)
		return err == nil && len(found) == 1
	})
	if tokens := w.logins(); len(tokens) != 2 {
		t.Errorf("tokens %v, want mesh-init's and health-sync's", tokens)
	}
	w.says(200, fmt.Sprintf(task, "STOPPED"))
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	if found, _, err := w.admin.Catalog().Service("web", "", nil); err != nil || len(found) > 0 {
		t.Errorf("left in the catalog: %v, %v", found, err)
	}
	// consul-dataplane started from mesh-init's token: the controller removes it.
	if left := w.logins(); !slices.Equal(left, meshInit) {
		t.Errorf("tokens left: %v, want mesh-init's %v", left, meshInit)
	}
}

// TestShortLivedTokenIsRenewed: with a token of a minute, the least that Consul grants, the
// task is in the mesh after two.
func TestShortLivedTokenIsRenewed(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newNoAgentWorld(t, time.Minute)
	p := w.start()
	first := w.logins()
	if len(first) != 1 {
		t.Fatalf("logins %v", first)
	}
	testkit.Within(t, 3*time.Minute, "the first token has expired or was logged out, and there is another",
		func() bool {
			now := w.logins()
			return len(now) == 1 && now[0] != first[0]
		})
	w.stop(p)
	if left := w.logins(); len(left) > 0 {
		t.Errorf("tokens left: %v", left)
	}
}
