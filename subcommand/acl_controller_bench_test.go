package subcommand

import (
	"bufio"
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
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	benchAccount = "123456789012"
	benchCluster = "arn:aws:ecs:us-east-1:" + benchAccount + ":cluster/default"
	// servicesPerTask is what each task has in Consul besides its tokens.
	servicesPerTask = 2
	// laterPasses are those that are measured after the first.
	laterPasses = 3
)

// BenchmarkACLController runs acl-controller beside a real Consul and a simulated ECS with
// a growing number of tasks, each with two tokens of real logins and two services. An
// operation is a controller's start, first pass and three later passes; with ten thousand
// tasks it also removes what five hundred dead ones left.
func BenchmarkACLController(b *testing.B) {
	f := newFleet(b, "iam-ecs-client-token", "iam-ecs-service-token")
	for _, tasks := range []int{100, 1000, 5000, 10_000} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			f.grow(b, tasks)
			for b.Loop() {
				f.measure(b, tasks)
			}
		})
	}
}

// BenchmarkAgentlessController does what BenchmarkACLController does, for controller and 5,000 tasks
// without agents, which have one token each and are on one node.
func BenchmarkAgentlessController(b *testing.B) {
	const tasks, dead = 5000, 500
	f := newFleet(b, "iam-ecs-service-token")
	f.agentless = true
	f.grow(b, tasks)
	for b.Loop() { // once: the dead stay dead
		f.measure(b, tasks)
		c := f.controller(b, f.consul.HTTPAddr)
		f.after(b, 1)
		b.ReportMetric(f.cleaned(b, dead).Seconds(), "s-clean-up")
		end(b, c)
	}
}

// BenchmarkLeftovers removes what five hundred dead tasks left, with 10 ms to Consul as in
// servers in other zones that write to disks: by the controller, and one call after the
// other.
func BenchmarkLeftovers(b *testing.B) {
	const dead, oneByOne = 500, 50
	f := newFleet(b, "iam-ecs-client-token", "iam-ecs-service-token")
	f.grow(b, dead+oneByOne)
	var delay, writes atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: f.consul.HTTPAddr})
	distant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(time.Duration(delay.Load()))
		if r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/v1/session/") &&
			!strings.HasPrefix(r.URL.Path, "/v1/kv/") {
			writes.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	defer distant.Close()
	b.Run("controller", func(b *testing.B) {
		for b.Loop() { // once: the dead stay dead
			c := f.controller(b, strings.TrimPrefix(distant.URL, "http://"))
			f.after(b, 1)
			writes.Store(0)
			f.after(b, 1+laterPasses)
			b.ReportMetric(float64(writes.Load())/laterPasses, "writes/pass")
			delay.Store(int64(10 * time.Millisecond))
			b.ReportMetric(f.cleaned(b, dead).Seconds(), "s-clean-up")
			end(b, c)
		}
	})
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			took := f.deleteEach(b, distant.URL, f.tasks[dead:])
			b.ReportMetric(took.Seconds()*dead/oneByOne, "s-clean-up")
		}
	})
}

// fleet is a simulated cluster whose tasks are in a real Consul.
type fleet struct {
	program string
	// methods are those that each task logs in by.
	methods   []string
	agentless bool
	ecs       *awstest.ECS
	consul    *testkit.Consul
	admin     *api.Client
	// anonymous logs in.
	anonymous       *api.Client
	bearer, metrics string
	tasks           []string
}

func newFleet(b *testing.B, methods ...string) *fleet {
	f := &fleet{methods: methods, program: filepath.Join(testkit.Programs(b), "consul-ecs")}
	sts := awstest.Start(awstest.Role{Account: benchAccount, Path: "/consul-ecs/", Name: "web",
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"}})
	b.Cleanup(sts.Stop)
	f.bearer = check(sts.Bearer(b.Context()))(b)
	f.ecs = awstest.NewECS(b, awstest.ECSOptions{})
	f.consul = check(testkit.StartConsul(testkit.ConsulOptions{ACL: true}))(b)
	b.Cleanup(f.consul.Require(b).Stop)
	f.admin = check(consulutil.NewClient(consulutil.Options{Address: f.consul.HTTPAddr, Token: f.consul.Token}))(b)
	f.anonymous = check(consulutil.NewClient(consulutil.Options{Address: f.consul.HTTPAddr}))(b)
	for _, name := range methods { // whose endpoints the controller keeps
		_, _, err := f.admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam",
			Config: map[string]any{
				"BoundIAMPrincipalARNs":  []string{"arn:aws:iam::" + benchAccount + ":role/consul-ecs/*"},
				"EnableIAMEntityDetails": true,
				"STSEndpoint":            sts.URL, "IAMEndpoint": sts.URL,
			}}, nil)
		if err == nil {
			_, _, err = f.admin.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: name, BindType: "service",
				BindName: "web"}, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	f.metrics = fmt.Sprintf("127.0.0.1:%d", check(testkit.FreePorts(1))(b)[0])
	return f
}

// check ends the benchmark at an error.
func check[T any](v T, err error) func(*testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

// grow runs tasks until there are so many, each with what it has in Consul.
func (f *fleet) grow(b *testing.B, tasks int) {
	arns := f.ecs.Run(awstest.TaskGroup{Family: "web", Count: tasks - len(f.tasks),
		Tags: map[string]string{"consul.hashicorp.com/mesh": "true"}})
	f.tasks = append(f.tasks, arns...)
	const loaders = 8
	errs := make(chan error, loaders)
	for i := range loaders {
		go func() {
			var err error
			for at := i; at < len(arns) && err == nil; at += loaders {
				err = f.register(b, arns[at])
			}
			errs <- err
		}()
	}
	for range loaders {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
	if b.Failed() {
		b.FailNow()
	}
}

// register logs a task in and registers its services.
func (f *fleet) register(b *testing.B, arn string) error {
	id := arn[strings.LastIndex(arn, "/")+1:]
	meta := map[string]string{config.LoginMetaTaskID: id, config.LoginMetaCluster: benchCluster}
	for _, method := range f.methods {
		if _, err := consulutil.Login(b.Context(), f.anonymous, consulutil.LoginParams{Method: method, Bearer: f.bearer,
			Meta: meta}); err != nil {
			return err
		}
	}
	for _, service := range []api.AgentService{
		{Service: "web", ID: workload.ServiceID("web", id)},
		{Service: "web-sidecar-proxy", ID: workload.ProxyID(workload.ServiceID("web", id))},
	} {
		service.Meta = map[string]string{config.MetaSource: config.SourceValue, config.MetaTaskID: id,
			config.MetaTaskARN: arn}
		if _, err := f.admin.Catalog().Register(&api.CatalogRegistration{Node: f.node(id), Address: "10.0.0.1",
			Service: &service}, nil); err != nil {
			return err
		}
	}
	return nil
}

// node returns where a task's services are.
func (f *fleet) node(id string) string {
	if f.agentless {
		return benchCluster
	}
	return "node-" + id
}

// controller starts one that finds Consul at an address. The budget is 100 calls a second,
// so that it is not what is measured.
func (f *fleet) controller(b *testing.B, consul string) *testkit.Process {
	command := "acl-controller"
	if f.agentless {
		command = "controller"
	}
	host, port, _ := strings.Cut(consul, ":")
	return testkit.StartProcess(b, testkit.ProcessOptions{Quiet: true, Env: []string{
		fmt.Sprintf(`CONSUL_ECS_CONFIG_JSON={"bootstrapDir":"/consul","consulServers":{"hosts":%q,"skipServerWatch":true,"defaults":{"tls":false},"http":{"port":%s,"https":false}}}`, host, port),
		"CONSUL_HTTP_ADDR=" + consul, "CONSUL_HTTP_TOKEN=" + f.consul.Token, "AWS_ENDPOINT_URL_ECS=" + f.ecs.URL(),
		"AWS_ACCESS_KEY_ID=" + f.ecs.Simulator.Key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + f.ecs.Simulator.Key.Secret,
	}}, f.program, command, "-cluster", benchCluster, "-metrics-addr", f.metrics, "-interval", "1s", "-aws-rate", "100")
}

// end ends a controller by SIGTERM, so that the next one leads at once.
func end(b *testing.B, c *testkit.Process) {
	c.Signal(syscall.SIGTERM)
	if code := c.Wait(); code != 0 {
		b.Fatalf("acl-controller: exit code %d", code)
	}
}

func (f *fleet) measure(b *testing.B, tasks int) {
	c := f.controller(b, f.consul.HTTPAddr)
	first := f.after(b, 1)
	last := f.after(b, 1+laterPasses)
	if last["tasks"] != float64(tasks) || last["tokens"] != float64(len(f.methods)*tasks) ||
		last["services"] != float64(servicesPerTask*tasks) {
		b.Fatalf("the controller counts %v tasks, %v tokens and %v services, want %d tasks", last["tasks"],
			last["tokens"], last["services"], tasks)
	}
	if n := last[`passes_total{result="error"}`]; n > 0 {
		b.Fatalf("%v passes failed", n)
	}
	passes := last[`passes_total{result="ok"}`] - first[`passes_total{result="ok"}`]
	later := func(name string) float64 { return (last[name] - first[name]) / passes }
	b.ReportMetric(first["aws_calls_total"], "calls/first-pass")
	b.ReportMetric(later("aws_calls_total"), "calls/pass")
	b.ReportMetric(first["pass_duration_seconds_sum"], "s/first-pass")
	b.ReportMetric(later("pass_duration_seconds_sum"), "s/pass")
	b.ReportMetric(residentMB(b, c.PID), "MB-RSS")
	end(b, c)
}

func residentMB(b *testing.B, pid int) float64 {
	text := check(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(b)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	return check(strconv.ParseFloat(strings.Fields(after)[0], 64))(b) * 1024 / 1e6
}

// cleaned stops some tasks and returns how long what they left stays.
func (f *fleet) cleaned(b *testing.B, dead int) time.Duration {
	f.ecs.Stop(f.tasks[:dead]...)
	begin := time.Now()
	f.until(b, "no leftovers of dead tasks", func(m map[string]float64) bool {
		return m[`deletions_total{kind="token",reason="stopped"}`] == float64(len(f.methods)*dead) &&
			m[`deletions_total{kind="service",reason="stopped"}`] == float64(servicesPerTask*dead)
	})
	return time.Since(begin)
}

// deleteEach deletes what tasks have in Consul one call after the other.
func (f *fleet) deleteEach(b *testing.B, address string, arns []string) time.Duration {
	client := check(consulutil.NewClient(consulutil.Options{Address: address, Token: f.consul.Token}))(b)
	list, _, err := f.admin.ACL().TokenList(nil)
	if err != nil {
		b.Fatal(err)
	}
	tokens := map[string][]string{}
	for _, t := range list {
		_, rest, _ := strings.Cut(t.Description, config.LoginMetaTaskID+`":"`)
		id, _, _ := strings.Cut(rest, `"`)
		tokens[id] = append(tokens[id], t.AccessorID)
	}
	begin := time.Now()
	for _, arn := range arns {
		id := arn[strings.LastIndex(arn, "/")+1:]
		if len(tokens[id]) != len(f.methods) {
			b.Fatalf("task %s has %d tokens", id, len(tokens[id]))
		}
		for _, accessor := range tokens[id] {
			if _, err := client.ACL().TokenDelete(accessor, nil); err != nil {
				b.Fatal(err)
			}
		}
		for _, service := range []string{workload.ServiceID("web", id),
			workload.ProxyID(workload.ServiceID("web", id))} {
			if _, err := client.Catalog().Deregister(&api.CatalogDeregistration{Node: f.node(id), ServiceID: service},
				nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	return time.Since(begin)
}

// after waits for so many passes and returns the metrics then.
func (f *fleet) after(b *testing.B, passes float64) map[string]float64 {
	return f.until(b, fmt.Sprintf("%v passes", passes),
		func(m map[string]float64) bool { return m[`passes_total{result="ok"}`] >= passes })
}

// until reads the controller's metrics, named without their prefix, until a condition holds.
func (f *fleet) until(b *testing.B, what string, holds func(map[string]float64) bool) map[string]float64 {
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if m := f.read(); holds(m) {
			return m
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("%s: not within 2m", what)
		}
	}
}

func (f *fleet) read() map[string]float64 {
	m := map[string]float64{}
	res, err := http.Get("http://" + f.metrics + "/metrics")
	if err != nil {
		return m // it has not started to listen
	}
	defer res.Body.Close()
	for scan := bufio.NewScanner(res.Body); scan.Scan(); {
		name, value, _ := strings.Cut(scan.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[strings.TrimPrefix(name, "consul_ecs_controller_")] = v
		}
	}
	return m
}
