package healthsync_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/awsutil/tmds"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/healthsync"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

var (
	open    *testkit.Consul // no ACLs
	secured *testkit.Consul // default deny
)

func TestMain(m *testing.M) {
	var err error
	// Without the interval an agent tells the servers about a changed output
	// only after minutes, and hides a chatty refresh from the tests.
	if open, err = testkit.StartConsul(testkit.ConsulOptions{HCL: `check_update_interval = "0s"`}); err == nil {
		secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		open.Stop()
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, open.Stop, secured.Stop))
}

// task is a task whose health-sync runs against a real Consul, built of the
// parts that the command builds it of.
type task struct {
	t          *testing.T
	cfg        *config.Config
	w          workload.Workload
	management *api.Client
	registrar  registrar.Registrar
	token      string // of the registration

	body   atomic.Pointer[string] // the metadata endpoint's answer
	status atomic.Int32
	deps   healthsync.Deps
	signal context.CancelCauseFunc
	result chan error
}

// newTask registers a service of the test's name with its checks, as mesh-init
// does, through address, the agent's.
func newTask(t *testing.T, c *testkit.Consul, address, name string, containers ...string) *task {
	t.Helper()
	c.Require(t)
	k := &task{t: t, result: make(chan error, 1), cfg: &config.Config{
		BootstrapDir:         t.TempDir(),
		HealthSyncContainers: containers,
		Service:              &config.Service{Name: name, Port: 8080},
		Proxy:                &config.Proxy{PublicListenerPort: 20000},
	}}
	k.management = client(t, consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	agent := client(t, consulutil.Options{Address: address})
	var err error
	if k.registrar, err = registrar.New(k.cfg, agent); err != nil {
		t.Fatal(err)
	}
	k.answer(http.StatusOK, nil)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(k.status.Load()))
		fmt.Fprint(w, *k.body.Load())
	}))
	t.Cleanup(endpoint.Close)
	metadata := tmds.New(endpoint.URL)
	first, err := metadata.Task(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if k.w, err = workload.New(k.cfg, first); err != nil {
		t.Fatal(err)
	}
	if c.Token != "" {
		k.cfg.ConsulLogin.Enabled = true
		k.token = k.newToken("service-token")
	}
	if err := k.registrar.Register(t.Context(), k.token, k.w); err != nil {
		t.Fatal(err)
	}
	k.deps = healthsync.Deps{
		Metadata: metadata,
		Checks:   k.registrar,
		LogOut: func(ctx context.Context, secret string) error {
			return consulutil.Logout(ctx, client(t, consulutil.Options{Address: c.HTTPAddr}), secret)
		},
		Classify: consulutil.Classify,
		Log:      hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}),
	}
	return k
}

func client(t *testing.T, o consulutil.Options) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer sets what the metadata endpoint says about containers.
func (k *task) answer(status int, health map[string]string) {
	var containers []map[string]any
	for name, word := range health {
		containers = append(containers, map[string]any{
			"Name": name, "Type": "NORMAL", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
			"Health": map[string]any{"status": word},
		})
	}
	body, _ := json.Marshal(map[string]any{
		"Cluster":    "arn:aws:ecs:us-west-2:111122223333:cluster/mesh",
		"TaskARN":    "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a",
		"Family":     "family",
		"Containers": containers,
	})
	k.raw(status, string(body))
}

func (k *task) raw(status int, body string) {
	k.body.Store(&body)
	k.status.Store(int32(status))
}

// newToken writes a token that a login of this service would give.
func (k *task) newToken(file string) string {
	k.t.Helper()
	// Only tokens of a login can be logged out, so there has to be one.
	token := loginToken(k.t, k.management, k.w.Name)
	if err := os.WriteFile(filepath.Join(k.cfg.BootstrapDir, file), []byte(token), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return token
}

// loginToken logs in like a task whose role is called as its service. The fake
// STS looks at no signature, so the bearer has none.
func loginToken(t *testing.T, management *api.Client, service string) string {
	t.Helper()
	role := awstest.Role{Account: "111122223333", Path: "/", Name: service}
	aws := awstest.New(t, role)
	method := fmt.Sprintf("%s-%d", service, time.Now().UnixNano())
	acl := management.ACL()
	if _, _, err := acl.AuthMethodCreate(&api.ACLAuthMethod{Name: method, Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs": []string{role.ARN()}, "STSEndpoint": aws.URL,
	}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := acl.BindingRuleCreate(&api.ACLBindingRule{
		AuthMethod: method, BindType: api.BindingRuleBindTypeService, BindName: "${entity_name}",
	}, nil); err != nil {
		t.Fatal(err)
	}
	pack := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	bearer, _ := json.Marshal(map[string]string{
		"iam_http_request_method": "POST",
		"iam_request_url":         pack(aws.URL + "/"),
		"iam_request_headers":     pack(`{"Content-Type":["application/x-www-form-urlencoded"]}`),
		"iam_request_body":        pack("Action=GetCallerIdentity&Version=2011-06-15"),
	})
	token, err := consulutil.Login(t.Context(), management, consulutil.LoginParams{Method: method, Bearer: string(bearer)})
	if err != nil {
		t.Fatal(err)
	}
	return token.Secret
}

func tokenExists(t *testing.T, management *api.Client, secret string) bool {
	t.Helper()
	_, _, err := management.ACL().TokenReadSelf(&api.QueryOptions{Token: secret})
	if err != nil && !consulutil.UnknownToken(err) {
		t.Fatal(err)
	}
	return err == nil
}

func (k *task) start() {
	ctx, cancel := context.WithCancelCause(context.Background())
	k.signal = cancel
	go func() {
		k.result <- healthsync.Run(ctx, healthsync.Options{Config: k.cfg, StopTimeout: 30 * time.Second}, k.deps)
	}()
	k.t.Cleanup(func() { k.signal(nil) })
}

// term stops health-sync and returns its error and how long that took.
func (k *task) term() (time.Duration, error) {
	k.t.Helper()
	began := time.Now()
	k.signal(&cli.SignalError{Signal: syscall.SIGTERM})
	select {
	case err := <-k.result:
		return time.Since(began), err
	case <-time.After(30 * time.Second):
		k.t.Fatal("did not stop in its stop timeout")
	}
	return 0, nil
}

// check is what the servers' catalog says about a container's check.
func (k *task) check(container string) *api.HealthCheck {
	k.t.Helper()
	checks, _, err := k.management.Health().Checks(k.w.Name, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, c := range checks {
		if c.CheckID == workload.CheckID(k.w.ID, container) {
			return c
		}
	}
	return &api.HealthCheck{Status: "absent"}
}

func (k *task) eventually(container, status string) {
	k.t.Helper()
	testkit.Eventually(k.t, container+" is "+status, func() bool { return k.check(container).Status == status })
}

func health(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func TestConsulFollowsECS(t *testing.T) {
	t.Parallel()
	k := newTask(t, open, open.HTTPAddr, "follows", "app", "side")
	k.answer(200, health("app", "HEALTHY", "side", "UNHEALTHY", "log-router", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	k.eventually("side", "critical")
	if got := k.check("log-router").Status; got != "absent" {
		t.Errorf("the unlisted container's check is %s", got)
	}
	k.answer(200, health("side", "HEALTHY")) // app is missing
	k.eventually("app", "critical")
	k.eventually("side", "passing")
	if got := k.check("app").Output; got != `container "app" is not in the task metadata` {
		t.Errorf("output %q", got)
	}
	k.answer(200, health("app", "HEALTHY", "side", "HEALTHY"))
	k.eventually("app", "passing")
	k.raw(200, "{}") // no task: no news
	k.raw(500, "oops")
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
	for _, container := range []string{"app", "side"} {
		if got := k.check(container); got.Status != "critical" || got.Output != `container "`+container+`" belongs to a task that is stopping` {
			t.Errorf("%s was left %s, %q", container, got.Status, got.Output)
		}
	}
}

func TestConsulWeakness02ErrorDocumentIsNoNews(t *testing.T) {
	t.Parallel()
	k := newTask(t, open, open.HTTPAddr, "document", "app")
	reads := make(chan error, 100)
	k.deps.Metadata = observed{k.deps.Metadata, reads}
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	for _, body := range []string{"{}", `{"message":"task not found"}`, "[]", ""} {
		k.raw(200, body)
		waitForFault(t, reads)
	}
	k.raw(500, `{"Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a"}`)
	waitForFault(t, reads)
	if got := k.check("app").Status; got != "passing" {
		t.Errorf("an error document made the check %s", got)
	}
	k.term()
}

// observed reports the outcome of every metadata read.
type observed struct {
	healthsync.Metadata
	reads chan error
}

func (o observed) Task(ctx context.Context) (workload.Task, error) {
	task, err := o.Metadata.Task(ctx)
	o.reads <- err
	return task, err
}

func waitForFault(t *testing.T, reads chan error) {
	t.Helper()
	for deadline := time.After(testkit.Patience); ; {
		select {
		case err := <-reads:
			if err != nil {
				return
			}
		case <-deadline:
			t.Fatal("the metadata was not read")
		}
	}
}

// A refresh is a write that repeats status and output. It must not reach the
// servers: health writes flood their leader otherwise. The old check's TTL is
// shorter than a refresh to show that it is replaced: it would run out.
func TestConsulWeakness13OldTTLIsReplacedAndRefreshesAreQuiet(t *testing.T) {
	t.Parallel()
	k := newTask(t, open, open.HTTPAddr, "quiet", "app")
	err := k.management.Agent().CheckRegister(&api.AgentCheckRegistration{
		ID: workload.CheckID(k.w.ID, "app"), Name: "consul ecs synced", ServiceID: k.w.ID,
		AgentServiceCheck: api.AgentServiceCheck{TTL: "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var refreshes atomic.Int32
	k.deps.Checks = counting{k.registrar, &refreshes}
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	before := k.check("app")
	testkit.Eventually(t, "a refresh", func() bool { return refreshes.Load() == 1 })
	after := k.check("app")
	if after.Status != "passing" || after.ModifyIndex != before.ModifyIndex {
		t.Errorf("%s (%s) with index %d, before the refresh %d", after.Status, after.Output, after.ModifyIndex, before.ModifyIndex)
	}
	k.term()
	if last := k.check("app").ModifyIndex; last == before.ModifyIndex {
		t.Error("a real change did not move the index either")
	}
}

// counting counts the writes of existing checks that were accepted.
type counting struct {
	healthsync.Checks
	writes *atomic.Int32
}

func (c counting) SetStatus(ctx context.Context, token string, w workload.Workload, check workload.SyncCheck, status, output string) error {
	err := c.Checks.SetStatus(ctx, token, w, check, status, output)
	if err == nil {
		c.writes.Add(1)
	}
	return err
}

func TestConsulWeakness13LostStateIsRepaired(t *testing.T) {
	t.Parallel()
	k := newTask(t, open, open.HTTPAddr, "lost", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")

	if err := k.management.Agent().CheckDeregister(workload.CheckID(k.w.ID, "app")); err != nil {
		t.Fatal(err)
	}
	k.answer(200, health("app", "UNHEALTHY"))
	k.eventually("app", "critical")

	for _, id := range []string{k.w.ID, k.w.Proxy.ID} {
		if err := k.management.Agent().ServiceDeregister(id); err != nil {
			t.Fatal(err)
		}
	}
	k.answer(200, health("app", "HEALTHY"))
	k.eventually("app", "passing")
	if _, _, err := k.management.Agent().Service(k.w.Proxy.ID, nil); err != nil {
		t.Errorf("the proxy is not back: %v", err)
	}
	k.term()
}

func TestConsulACLTokensEndWithTheTask(t *testing.T) {
	t.Parallel()
	for name, owned := range map[string]bool{"old-client-script": false, "client-entrypoint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTask(t, secured, secured.HTTPAddr, name, "app")
			clientToken := k.newToken("client-token")
			if owned {
				if err := os.WriteFile(filepath.Join(k.cfg.BootstrapDir, "client-token.owner"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			k.answer(200, health("app", "HEALTHY"))
			k.start()
			k.eventually("app", "passing")
			if _, err := k.term(); err != nil {
				t.Fatal(err)
			}
			// The catalog knows before the token is gone.
			if got := k.check("app").Status; got != "critical" {
				t.Errorf("left %s", got)
			}
			if tokenExists(t, k.management, k.token) {
				t.Error("service-token still works")
			}
			if got := tokenExists(t, k.management, clientToken); got != owned {
				t.Errorf("client-token works: %v, want %v", got, owned)
			}
		})
	}
}

// The controller, or a second run, may have been faster.
func TestConsulACLTokenThatIsGoneIsLoggedOut(t *testing.T) {
	t.Parallel()
	k := newTask(t, secured, secured.HTTPAddr, "gone", "app")
	clientToken := k.newToken("client-token")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	logOut := k.deps.LogOut
	if err := logOut(t.Context(), clientToken); err != nil {
		t.Fatal(err)
	}
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
}

func TestConsulWeakness16AgentThatLeft(t *testing.T) {
	t.Parallel()
	secured.Require(t)
	target := &url.URL{Scheme: "http", Host: secured.HTTPAddr}
	agent := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(agent.Close)
	k := newTask(t, secured, agent.URL, "left", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	agent.Close()
	took, err := k.term()
	if err != nil || took < 5*time.Second || took > 10*time.Second {
		t.Errorf("took %s, %v", took, err)
	}
	if tokenExists(t, k.management, k.token) {
		t.Error("service-token still works")
	}
}

func TestConsulWeakness11HungAgent(t *testing.T) {
	t.Parallel()
	open.Require(t)
	var hangs atomic.Bool
	held := make(chan struct{}, 100)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: open.HTTPAddr})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			// Only a server that has read the body notices that its caller
			// went away.
			io.Copy(io.Discard, r.Body)
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(agent.Close)
	k := newTask(t, open, agent.URL, "hung", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	hangs.Store(true)
	k.answer(200, health("app", "UNHEALTHY"))
	select {
	case <-held: // this write is cut off by the signal, not by its timeout
	case <-time.After(testkit.Patience):
		t.Fatal("nothing was written")
	}
	go func() {
		<-held // the first critical write; it runs into its timeout
		hangs.Store(false)
	}()
	if took, err := k.term(); err != nil || took > 10*time.Second {
		t.Errorf("took %s, %v", took, err)
	}
	if got := k.check("app").Status; got != "critical" {
		t.Errorf("left %s", got)
	}
}
