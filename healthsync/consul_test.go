package healthsync_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/healthsync"
	"github.com/meshtask/consul-ecs/internal/exit"
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
	// Without the interval an agent sends the servers a changed output
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
	stop       time.Duration

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
	return newTaskOf(t, c, address, &config.Config{
		HealthSyncContainers: containers,
		Service:              &config.Service{Name: name, Port: 8080},
		Proxy:                &config.Proxy{PublicListenerPort: 20000},
	})
}

func newTaskOf(t *testing.T, c *testkit.Consul, address string, cfg *config.Config) *task {
	t.Helper()
	c.Require(t)
	cfg.BootstrapDir = t.TempDir()
	// A test whose end waits for a limit fails: term does not wait for so long.
	k := &task{t: t, result: make(chan error, 1), cfg: cfg, stop: 4 * testkit.Patience}
	k.management = client(t, consulutil.Options{Address: c.HTTPAddr, Token: c.Token})
	agent := client(t, consulutil.Options{Address: address})
	k.registrar = registrar.New(k.cfg, agent)
	k.answer(http.StatusOK, nil)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(k.status.Load()))
		fmt.Fprint(w, *k.body.Load())
	}))
	t.Cleanup(endpoint.Close)
	metadata := awsutil.NewMetadataClient(endpoint.URL)
	var first workload.Task
	var err error
	testkit.Eventually(t, "the metadata can be read", func() bool {
		first, err = metadata.Task(t.Context())
		return err == nil
	})
	if k.w, err = workload.New(k.cfg, first, ""); err != nil {
		t.Fatal(err)
	}
	if c.Token != "" {
		k.cfg.ConsulLogin.Enabled = true
		k.token = k.newToken("service-token")
	}
	if k.w.Node != "" { // as the controller does
		node := &api.CatalogRegistration{Node: k.w.Node, Address: "10.0.0.1", SkipNodeUpdate: true}
		if _, err := k.management.Catalog().Register(node, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.registrar.Register(t.Context(), k.token, k.w); err != nil {
		t.Fatal(err)
	}
	k.cfg.ConsulHTTPAddr = c.HTTPAddr
	k.deps = healthsync.Deps{
		Accepts:    func(context.Context, string) error { return errors.ErrUnsupported },
		AwaitStart: func(context.Context) error { return nil },
		Metadata:   metadata,
		Registrar:  k.registrar,
		Publish:    registrar.Publisher(agent),
		LogOut: func(ctx context.Context, secret string) error {
			return consulutil.Logout(ctx, client(t, consulutil.Options{Address: c.HTTPAddr}), secret)
		},
		ReadToken: func(ctx context.Context, secret string) (consulutil.Token, error) {
			return consulutil.ReadToken(ctx, agent, secret)
		},
		DeregisterAtServers: func(ctx context.Context, token string, w workload.Workload) error {
			return registrar.DeregisterAtServers(ctx, client(t, consulutil.Options{Address: c.HTTPAddr}), w, token)
		},
		Log: hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}),
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
	// The top-level name is the asking container's: one answer does for the base
	// URI, too.
	const self = "consul-ecs-health-sync"
	containers := []map[string]any{{"Name": self, "Type": "NORMAL",
		"DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
		"Networks": []any{map[string]any{"IPv4Addresses": []string{"10.0.0.9"}}}}}
	for name, word := range health {
		containers = append(containers, map[string]any{
			"Name": name, "Type": "NORMAL", "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING",
			"Health": map[string]any{"status": word},
		})
	}
	body, _ := json.Marshal(map[string]any{
		"Name":       self,
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
	token, err := consulutil.Login(t.Context(), management,
		consulutil.LoginParams{Method: method, Bearer: string(bearer)})
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
		k.result <- healthsync.Run(ctx, healthsync.Options{
			Config: k.cfg, StopTimeout: k.stop,
		}, k.deps)
	}()
	k.t.Cleanup(func() { k.signal(nil) })
}

// term stops health-sync and returns its error and how long that took.
func (k *task) term() (time.Duration, error) {
	k.t.Helper()
	began := time.Now()
	k.signal(&exit.SignalError{Signal: syscall.SIGTERM})
	select {
	case err := <-k.result:
		return time.Since(began), err
	case <-time.After(testkit.Patience):
		k.t.Fatal("did not stop")
	}
	return 0, nil
}

// check returns what the servers' catalog says about a container's check.
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
