package subcommand

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// clusterWorld is a Consul with ACLs, an ECS, and one cluster in it.
type clusterWorld struct {
	*testkit.Consul
	t     *testing.T
	admin *api.Client
	ecs   *awstest.ECS
	arn   string
	// methods are the auth methods of the tasks' tokens, rules how many binding rules
	// they have.
	methods []string
	rules   int

	mu     sync.Mutex
	agents []string // of AWS's requests
	aws    *httptest.Server
}

func newClusterWorld(t *testing.T) *clusterWorld {
	t.Helper()
	return newClusterWorldOf(t, testkit.ConsulOptions{ACL: true})
}

func newClusterWorldOf(t *testing.T, o testkit.ConsulOptions) *clusterWorld {
	t.Helper()
	c, err := testkit.StartConsul(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	w := &clusterWorld{Consul: c, t: t, ecs: awstest.NewECS(t, awstest.ECSOptions{}),
		arn:     "arn:aws:ecs:us-east-1:123456789012:cluster/mesh",
		methods: []string{"iam-ecs-client-token", "iam-ecs-service-token"}, rules: 2}
	w.admin = w.client(c.Token)
	w.aws = httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		w.agents = append(w.agents, req.UserAgent())
		w.mu.Unlock()
		w.ecs.ServeHTTP(res, req)
	}))
	t.Cleanup(w.aws.Close)
	return w
}

func (w *clusterWorld) client(token string) *api.Client {
	w.t.Helper()
	client, err := consulutil.NewClient(consulutil.Options{Address: w.HTTPAddr, Token: token})
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// env returns a controller's environment, with our token and Consul.
func (w *clusterWorld) env() []string {
	key := w.ecs.Simulator.Key
	return []string{
		"ECS_CONTAINER_METADATA_URI_V4=", "CONSUL_HTTP_ADDR=" + w.HTTPAddr, "CONSUL_HTTP_TOKEN=" + w.Token,
		"AWS_ENDPOINT_URL_ECS=" + w.aws.URL, "AWS_ACCESS_KEY_ID=" + key.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + key.Secret,
		"AWS_REGION=eu-north-1", "AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
	}
}

// run runs tasks of the cluster and returns their IDs.
func (w *clusterWorld) run(n int) []string {
	w.t.Helper()
	var ids []string
	for _, arn := range w.ecs.Run(awstest.TaskGroup{Family: "web", Count: n, Cluster: "mesh",
		Tags: map[string]string{"consul.hashicorp.com/mesh": "true"}}) {
		ids = append(ids, arn[strings.LastIndex(arn, "/")+1:])
	}
	return ids
}

// logIn logs a task in with the auth methods that setup has made, as consul-client
// and mesh-init do, and returns its tokens. An operator has set the methods'
// endpoints.
func (w *clusterWorld) logIn(sts *awstest.AWS, id string) (secrets []string) {
	w.t.Helper()
	bearer, err := sts.Bearer(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range w.methods {
		token, err := consulutil.Login(w.t.Context(), w.client(""), consulutil.LoginParams{
			Method: name, Bearer: bearer, Meta: map[string]string{"consul.hashicorp.com/task-id": id,
				"consul.hashicorp.com/cluster": w.arn},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		secrets = append(secrets, token.Secret)
	}
	return secrets
}

// knows reports whether Consul knows a token.
func (w *clusterWorld) knows(secret string) bool {
	w.t.Helper()
	_, _, err := w.admin.ACL().TokenReadSelf(&api.QueryOptions{Token: secret})
	if err != nil && !consulutil.UnknownToken(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// operator sets the endpoints of the auth methods, once they are there.
func (w *clusterWorld) operator(sts *awstest.AWS) {
	w.t.Helper()
	for _, name := range w.methods {
		var method *api.ACLAuthMethod
		testkit.Eventually(w.t, name+" is there", func() bool {
			var err error
			method, _, err = w.admin.ACL().AuthMethodRead(name, nil)
			return err == nil && method != nil
		})
		method.Config["STSEndpoint"], method.Config["IAMEndpoint"] = sts.URL, sts.URL
		if _, _, err := w.admin.ACL().AuthMethodUpdate(method, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	testkit.Eventually(w.t, "binding rules and the records of the methods are there", func() bool {
		rules, _, err := w.admin.ACL().BindingRuleList("", nil)
		return err == nil && len(rules) == w.rules+len(w.methods)
	})
}

// leave registers what a task of each ID has in Consul: a service and its proxy, on a
// separate node.
func (w *clusterWorld) leave(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.leaveOn("node-"+id, id)
	}
}

// leaveOn does the same on one node.
func (w *clusterWorld) leaveOn(node string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		meta := map[string]string{"source": "consul-ecs", "task-id": id, "task-arn": strings.Replace(w.arn, ":cluster/",
			":task/", 1) + "/" + id}
		for _, suffix := range []string{"", "-sidecar-proxy"} {
			_, err := w.admin.Catalog().Register(&api.CatalogRegistration{
				Node: node, Address: "10.0.0.1", SkipNodeUpdate: true,
				Service: &api.AgentService{ID: "web-" + id + suffix, Service: "web" + suffix, Meta: meta},
			}, nil)
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// services returns the IDs of all tasks that have services, sorted.
func (w *clusterWorld) services() []string {
	w.t.Helper()
	list, _, err := w.admin.Catalog().Service("web", "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, s := range list {
		ids = append(ids, strings.TrimPrefix(s.ServiceID, "web-"))
	}
	slices.Sort(ids)
	return ids
}

// leader returns the holder of the cluster's lock, or "".
func (w *clusterWorld) leader() string {
	w.t.Helper()
	pair, _, err := w.admin.KV().Get(controller.LockKey(w.arn, "", ""), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if pair == nil || pair.Session == "" {
		return ""
	}
	return string(pair.Value)
}

// controller starts an acl-controller as a process.
func (w *clusterWorld) controller(args ...string) *testkit.Process {
	w.t.Helper()
	return consulECS(w.t, w.env(), append([]string{"acl-controller", "-cluster", w.arn, "-interval", "1s", "-aws-rate",
		"50"}, args...)...)
}

// leads reports whether a process is the leader.
func (w *clusterWorld) leads(p *testkit.Process) bool {
	return strings.HasPrefix(w.leader(), fmt.Sprintf("process %d of ", p.PID))
}

// ends runs a controller that ends by itself.
func (w *clusterWorld) ends(t *testing.T, env ...string) (code int, stderr string) {
	t.Helper()
	return controllerEnds(t, append(w.env(), env...), "-cluster", w.arn)
}

func controllerEnds(t *testing.T, env []string, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	line := testkit.SelfArgs("consul-ecs", append([]string{"acl-controller"}, args...)...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// port returns a number's text.
func port(n int) string { return strconv.Itoa(n) }
