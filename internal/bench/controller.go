package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	benchAccount = "123456789012"
	benchCluster = "arn:aws:ecs:us-east-1:" + benchAccount + ":cluster/default"
	// perTaskTokens and perTaskServices are what each task has in Consul.
	perTaskTokens, perTaskServices = 2, 2
	// loaders is how many requests fill Consul at a time.
	loaders = 8
	// quietPasses are those after the first.
	quietPasses = 3
	// someDead is how many tasks are killed at the end.
	someDead = 500
)

// controllerFigure runs acl-controller beside a real Consul and a local ECS with
// more and more tasks, each with two tokens of real logins and two services on a
// node. The budget is 100 calls a second, so that it is not what is measured.
func controllerFigure(s *stage) ([]row, error) {
	f := &controllerBench{stage: s}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	var rows []row
	for _, tasks := range []int{100, 1000, 5000, 10_000} {
		if err := f.grow(tasks); err != nil {
			return rows, err
		}
		got, err := f.measure(tasks, tasks == 10_000)
		rows = append(rows, got...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

type controllerBench struct {
	*stage
	world  *simulated.World
	consul *testkit.Consul
	admin  *api.Client
	// anonymous logs in.
	anonymous   *api.Client
	ecs, bearer string
	tasks       []string
	metricsAddr string
}

// prepare starts the servers and makes the auth methods, whose endpoints are the
// local AWS: the controller leaves these as they are.
func (f *controllerBench) prepare() error {
	sts := awstest.Start(awstest.Role{Account: benchAccount, Path: "/consul-ecs/", Name: "web", Tags: map[string]string{"consul.hashicorp.com.service-name": "web"}})
	f.onClose(sts.Stop)
	var err error
	if f.bearer, err = sts.Bearer(f.ctx); err != nil {
		return err
	}
	if f.world, err = simulated.Open(simulated.Options{}); err != nil {
		return err
	}
	f.onClose(f.world.Close)
	if f.ecs, err = f.serve("", f.world); err != nil {
		return err
	}
	if f.consul, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil || f.consul == nil {
		return errors.Join(err, errors.New("consul: run 'make tools'"))
	}
	f.onClose(f.consul.Stop)
	if f.admin, err = consulutil.NewClient(consulutil.Options{Address: f.consul.HTTPAddr, Token: f.consul.Token}); err != nil {
		return err
	}
	if f.anonymous, err = consulutil.NewClient(consulutil.Options{Address: f.consul.HTTPAddr}); err != nil {
		return err
	}
	for _, name := range methods() {
		if _, _, err := f.admin.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam", Config: map[string]any{
			"BoundIAMPrincipalARNs": []string{"arn:aws:iam::" + benchAccount + ":role/consul-ecs/*"}, "EnableIAMEntityDetails": true,
			"STSEndpoint": sts.URL, "IAMEndpoint": sts.URL,
		}}, nil); err != nil {
			return err
		}
		if _, _, err := f.admin.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: name, BindType: "service", BindName: "web"}, nil); err != nil {
			return err
		}
	}
	ports, err := testkit.FreePorts(1)
	f.metricsAddr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	return err
}

func methods() []string { return []string{"iam-ecs-client-token", "iam-ecs-service-token"} }

// grow runs tasks until there are so many, each with what it has in Consul.
func (f *controllerBench) grow(tasks int) error {
	arns, err := f.world.Run(simulated.Group{Family: "web", Count: tasks - len(f.tasks), Tags: map[string]string{"consul.hashicorp.com/mesh": "true"}})
	if err != nil {
		return err
	}
	f.tasks = append(f.tasks, arns...)
	return inLoaders(arns, f.fill)
}

// inLoaders does something with each of them, several at a time.
func inLoaders(arns []string, do func(arn string) error) error {
	next := make(chan string)
	errs := make([]error, loaders)
	var wg sync.WaitGroup
	for i := range loaders {
		wg.Go(func() {
			for arn := range next {
				if errs[i] == nil {
					errs[i] = do(arn)
				}
			}
		})
	}
	for _, arn := range arns {
		next <- arn
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// fill logs a task in and registers its services.
func (f *controllerBench) fill(arn string) error {
	id := arn[strings.LastIndex(arn, "/")+1:]
	meta := map[string]string{workload.LoginMetaTaskID: id, workload.LoginMetaCluster: benchCluster}
	for _, method := range methods() {
		if _, err := consulutil.Login(f.ctx, f.anonymous, consulutil.LoginParams{Method: method, Bearer: f.bearer, Meta: meta}); err != nil {
			return err
		}
	}
	for _, s := range []struct{ name, id string }{{"web", workload.ServiceID("web", id)}, {"web-sidecar-proxy", workload.ProxyID(workload.ServiceID("web", id))}} {
		_, err := f.admin.Catalog().Register(&api.CatalogRegistration{
			Node: "node-" + id, Address: "10.0.0.1",
			Service: &api.AgentService{ID: s.id, Service: s.name, Meta: map[string]string{
				workload.MetaSource: workload.SourceValue, workload.MetaTaskID: id, workload.MetaTaskARN: arn,
			}},
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// measure runs a controller for some passes and, if so asked, kills tasks under
// it.
func (f *controllerBench) measure(tasks int, kill bool) ([]row, error) {
	c, err := f.controller(f.consul.HTTPAddr)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	first, err := f.after(c, 1)
	if err != nil {
		return nil, err
	}
	last, err := f.after(c, 1+quietPasses)
	if err != nil {
		return nil, err
	}
	memory, err := rss(c.pid)
	if err != nil {
		return nil, err
	}
	if last["tasks"] != float64(tasks) || last["tokens"] != float64(perTaskTokens*tasks) || last["services"] != float64(perTaskServices*tasks) {
		return nil, fmt.Errorf("%d tasks: the controller sees %v tasks, %v tokens and %v services", tasks, last["tasks"], last["tokens"], last["services"])
	}
	if n := last[`passes_total{result="error"}`]; n > 0 {
		return nil, fmt.Errorf("%d tasks: %v passes failed: %s", tasks, n, c.log)
	}
	passes := last[`passes_total{result="ok"}`] - first[`passes_total{result="ok"}`]
	quiet := func(name string) float64 { return (last[name] - first[name]) / passes }
	what := fmt.Sprintf("acl-controller, %d tasks: ", tasks)
	old, goal := "", ""
	if tasks == 10_000 {
		old, goal = "200", "110"
	}
	rows := []row{
		{what + "AWS calls, first pass", count, "", strings.Replace(goal, "110", "220", 1), sample{first["aws_calls_total"]}, nil},
		{what + "AWS calls, later pass", count, old, goal, sample{quiet("aws_calls_total")}, nil},
		{what + "first pass", seconds, "", "", sample{first["pass_duration_seconds_sum"]}, nil},
		{what + "later pass", seconds, "", "", sample{quiet("pass_duration_seconds_sum")}, nil},
		{what + "memory", megabytes, map[bool]string{true: "36"}[tasks == 5000], "64", sample{memory}, nil},
	}
	if !kill {
		return rows, c.end()
	}
	cleaned, err := f.cleaned(c)
	if err != nil {
		return rows, err
	}
	return append(rows, row{what + fmt.Sprintf("%d dead tasks to nothing left, at most", someDead), seconds, "", "", sample{cleaned}, nil}), c.end()
}

// controller starts one that finds Consul at an address.
func (f *controllerBench) controller(consul string) (*child, error) {
	return f.start([]string{
		"CONSUL_HTTP_ADDR=" + consul, "CONSUL_HTTP_TOKEN=" + f.consul.Token, "AWS_ENDPOINT_URL_ECS=http://" + f.ecs,
		"AWS_ACCESS_KEY_ID=" + f.world.Key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + f.world.Key.Secret,
	}, f.program, "acl-controller", "-cluster", benchCluster, "-metrics-addr", f.metricsAddr, "-interval", "1s", "-aws-rate", "100")
}

// end ends a controller in order, so that the next one leads at once.
func (c *child) end() error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.wait()
}

// cleaned kills some tasks and says how long their leftovers stay.
func (f *controllerBench) cleaned(c *child) (float64, error) {
	dead := f.tasks[:someDead]
	if err := f.world.Kill(dead...); err != nil {
		return 0, err
	}
	begin := time.Now()
	end, err := f.until("leftovers of dead tasks are gone", 100*time.Millisecond, 2*time.Minute, func() bool {
		m, err := f.metrics()
		return err == nil && m[`deletions_total{kind="token",reason="stopped"}`] == perTaskTokens*someDead &&
			m[`deletions_total{kind="service",reason="stopped"}`] == perTaskServices*someDead
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, c.log)
	}
	return end.Sub(begin).Seconds(), nil
}

// after waits for so many passes and returns the metrics then.
func (f *controllerBench) after(c *child, passes float64) (map[string]float64, error) {
	var m map[string]float64
	_, err := f.until(fmt.Sprintf("%v passes", passes), 20*time.Millisecond, 2*time.Minute, func() bool {
		var err error
		m, err = f.metrics()
		return err == nil && m[`passes_total{result="ok"}`] >= passes
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, c.log)
	}
	return m, nil
}

// metrics are the controller's, without their prefix.
func (f *controllerBench) metrics() (map[string]float64, error) {
	res, err := http.Get("http://" + f.metricsAddr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	m := map[string]float64{}
	scan := bufio.NewScanner(res.Body)
	for scan.Scan() {
		name, value, _ := strings.Cut(scan.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[strings.TrimPrefix(name, "consul_ecs_controller_")] = v
		}
	}
	return m, scan.Err()
}
