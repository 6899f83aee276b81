package meshinit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// The servers of this package's tests: with ACLs, without, and AWS.
var (
	secured *testkit.Consul
	open    *testkit.Consul
	aws     *awstest.AWS
)

// The auth method of every login, and one that trusts another path.
const (
	trusting = "iam-trusting"
	strict   = "iam-strict"
)

func TestMain(m *testing.M) {
	aws = awstest.Start(awstest.Role{
		Account: "123456789012", Path: "/consul-ecs/", Name: "task-role",
		// A role has one service; these tests use many names, so the binding
		// rule takes the name from the task instead.
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"},
	})
	// The AWS SDK reads its environment by itself.
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_REGION",
		"AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		os.Unsetenv(name)
	}
	os.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	os.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", aws.CredentialsURI())
	err := startConsul()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, secured.Stop, open.Stop, aws.Stop))
}

func startConsul() error {
	var err error
	// Each fixture has its own clients.
	const hcl = "limits { http_max_conns_per_client = 2000 }\n"
	if secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true, HCL: hcl}); err != nil || secured == nil {
		return err
	}
	if open, err = testkit.StartConsul(testkit.ConsulOptions{HCL: hcl}); err != nil {
		return err
	}
	admin, err := consulutil.NewClient(consulutil.Options{Address: secured.HTTPAddr, Token: secured.Token})
	if err != nil {
		return err
	}
	if err = createNode(admin, "prod"); err != nil {
		return err
	}
	for name, path := range map[string]string{trusting: "consul-ecs", strict: "other"} {
		if err = authMethod(admin, name, path); err != nil {
			return err
		}
		_, _, err = admin.ACL().BindingRuleCreate(&api.ACLBindingRule{
			AuthMethod: name, BindType: "service", BindName: "${entity_tags.consul.hashicorp.com.service-name}",
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// authMethod creates an auth method that trusts the roles below a path.
func authMethod(admin *api.Client, name, path string) error {
	_, _, err := admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::123456789012:role/" + path + "/*"},
		"EnableIAMEntityDetails": true,
		"IAMEntityTags":          []string{"consul.hashicorp.com.service-name"},
		"STSEndpoint":            aws.URL,
		"IAMEndpoint":            aws.URL,
	}}, nil)
	return err
}

// fixture is one run of mesh-init: options and dependencies as the command builds them,
// for a separate task.
type fixture struct {
	t       *testing.T
	server  *testkit.Consul
	dir     string
	cluster string
	taskID  string
	options meshinit.Options
	deps    meshinit.Deps
	// servers and bearer are of the login's session.
	servers func() (*api.Client, error)
	bearer  func(context.Context, workload.Task) (string, error)
	log     *testkit.Log
	// agentRequests are those that reached the agent, "PUT /v1/...", once
	// countRequests was called.
	requests *requests
}

var sceneNumber atomic.Int32

// newFixture prepares a run with the configuration document doc, in which DIR
// stands for a fresh bootstrapDir and ADDR for the Consul server, SERVERS for the
// settings of consulServers that lead there.
func newFixture(t *testing.T, server *testkit.Consul, doc string) *fixture {
	t.Helper()
	server.Require(t)
	s := &fixture{t: t, server: server, dir: t.TempDir(), cluster: "prod",
		taskID: fmt.Sprintf("task%d", sceneNumber.Add(1)), log: &testkit.Log{}}
	// Every request to Consul passes a counter in front of it.
	s.requests = &requests{}
	front := httptest.NewServer(s.requests.before("http://" + server.HTTPAddr))
	t.Cleanup(front.Close)
	doc = strings.NewReplacer("DIR", s.dir, "ADDR", front.URL, "SERVERS", serversAt(front.URL)).Replace(doc)
	cfg, _, err := config.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	s.options = meshinit.Options{Config: cfg, FileGroup: volume.GroupOfDir, Proxy: meshinit.AgentProxy{},
		Endpoint: meshinit.AgentEndpoint(), Limit: testkit.Patience, Version: "v9.8.7"}
	s.deps = meshinit.Deps{
		Metadata: s.taskMetadata(),
		Consul: func() (meshinit.Consul, error) {
			client, err := consulutil.NewClient(consulutil.Options{Address: front.URL})
			if err != nil {
				return meshinit.Consul{}, err
			}
			return meshinit.Consul{Registrar: registrar.New(cfg, client)}, nil
		},
		Session: func(task workload.Task, log hclog.Logger) *consulutil.Session {
			sign := func(ctx context.Context) (string, error) { return s.bearer(ctx, task) }
			return &consulutil.Session{Servers: s.servers, Bearer: sign, Limit: s.options.Limit, Log: log}
		},
		CopyProgram: func(path string) error { return os.WriteFile(path, []byte("program"), 0o755) },
		Log:         hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: s.log}),
	}
	s.servers = func() (*api.Client, error) {
		return consulutil.NewClient(consulutil.Options{Address: cfg.ConsulHTTPAddr, CAFile: cfg.ConsulCACertFile})
	}
	s.bearer = func(ctx context.Context, task workload.Task) (string, error) {
		signer, err := awsutil.NewSigner(ctx,
			awsutil.LoadOptions{DefaultRegion: task.Region(), UserAgent: "consul-ecs", Version: "v0"})
		if err != nil {
			return "", err
		}
		return signer.Bearer(ctx,
			awsutil.BearerOptions{Partition: task.Partition(), IncludeEntity: cfg.ConsulLogin.IncludeEntity})
	}
	if cfg.ConsulServers != nil {
		s.leaveAgent()
	}
	return s
}

// task returns the metadata document of the fixture's task. Its Name is that of the
// asking container, so that it answers the base URI, too.
func (s *fixture) task() string {
	return fmt.Sprintf(`{"Name":"app","Cluster":%q,"TaskARN":"arn:aws:ecs:us-west-2:123456789012:task/%[1]s/%s","Family":"Web","AvailabilityZone":"us-west-2b",
		"Containers":[{"Name":"sidecar-proxy","Image":"envoyproxy/envoy:v1.40.0"},
		{"Name":"app","Type":"NORMAL","Networks":[{"IPv4Addresses":["127.0.0.1"]}]}]}`, s.cluster, s.taskID)
}

// taskMetadata returns an endpoint that answers with the fixture's task.
func (s *fixture) taskMetadata() *awsutil.MetadataClient {
	return awsutil.NewMetadataClient(s.metadata(http.StatusOK, s.task()).URL)
}

// metadata starts an endpoint that answers body with status.
func (s *fixture) metadata(status int, body string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	s.t.Cleanup(server.Close)
	return server
}

func (s *fixture) run() error {
	s.t.Helper()
	return meshinit.Run(context.Background(), s.options, s.deps)
}

// mustRun calls run, and fails the test with its error.
func (s *fixture) mustRun() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatalf("%v\n%s", err, s.log)
	}
}

// admin returns a client that may do everything, past the counter.
func (s *fixture) admin() *api.Client {
	s.t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: s.server.HTTPAddr, Token: s.server.Token})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// tokens returns the accessors of the tokens that logins of the fixture's task left.
func (s *fixture) tokens() []string {
	s.t.Helper()
	list, _, err := s.admin().ACL().TokenList(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var accessors []string
	for _, token := range list {
		if strings.Contains(token.Description, `"consul.hashicorp.com/task-id":"`+s.taskID+`"`) {
			accessors = append(accessors, token.AccessorID)
		}
	}
	return accessors
}

// wantNothing checks that nothing remains after a failure.
func (s *fixture) wantNothing() {
	s.t.Helper()
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		// TestMeshInitReportsItsOutcome has its text.
		if e.Name() != workload.FileStatus || !strings.Contains(string(s.file(e.Name())), `"outcome":"failed"`) {
			s.t.Errorf("file left behind: %s", e.Name())
		}
	}
	services, err := s.admin().Agent().Services()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(services)), s.catalogIDs()) {
		if strings.HasSuffix(strings.TrimSuffix(id, "-sidecar-proxy"), "-"+s.taskID) {
			s.t.Errorf("service left behind: %s", id)
		}
	}
	if s.server.Token == "" {
		return
	}
	if tokens := s.tokens(); len(tokens) > 0 {
		s.t.Errorf("tokens left behind: %v", tokens)
	}
}

// service returns a registration as the agent has it.
func (s *fixture) service(id string) *api.AgentService {
	s.t.Helper()
	got, _, err := s.admin().Agent().Service(id, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// file returns a file of bootstrapDir.
func (s *fixture) file(name string) []byte {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func (s *fixture) wantMode(name string, want os.FileMode) {
	s.t.Helper()
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		s.t.Errorf("%s has mode %04o, want %04o", name, got, want)
	}
}

// bootstrap returns the decoded bootstrap.
func (s *fixture) bootstrap() map[string]any {
	s.t.Helper()
	var got map[string]any
	if err := json.Unmarshal(s.file(workload.FileBootstrap), &got); err != nil {
		s.t.Fatal(err)
	}
	return got
}

// limits returns limits for runs in which a step gives up, one run after the other until one is
// as wanted: each step has the same limit, and on a busy machine the first may be too
// short for those that should work.
func limits() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}
}

// differs says how an error is not as wanted.
func differs(err error, exit int, want []string) (problems []string) {
	if err == nil {
		return []string{"no error"}
	}
	if got := cli.ExitCode(err); got != exit {
		problems = append(problems, fmt.Sprintf("exit code = %d, want %d for %v", got, exit, err))
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			problems = append(problems, fmt.Sprintf("error does not name %s: %v", text, err))
		}
	}
	return problems
}
