package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/infra"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/runtime/hostcap"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/report"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/localecs/scenario/timeline"
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Options say where a scenario runs.
type Options struct {
	// Dir takes logs and volumes; it is made when missing.
	Dir string
	// Progress is told what happens.
	Progress Progress
	// StopOrder replaces the scenario's; empty leaves it.
	StopOrder string
	Log       hclog.Logger
}

// setUpLimit bounds the start of the Consul server and what is set up in it.
const setUpLimit = 60 * time.Second

// taskRun is one task of the scenario.
type taskRun struct {
	def         *taskdef.TaskDefinition
	service     string // of ECS; empty for a standalone task
	application string
	task        *localecs.Task
	mayEnd      bool     // a step has brought its end about, or awaits it
	judged      bool     // a step has looked at what is left of it
	killed      []string // the containers that a step has sent a signal to
	moments     timeline.Moments
}

// runner carries out one scenario.
type runner struct {
	file    *file.Scenario
	out     Progress
	begun   time.Time
	cluster *localecs.Cluster
	client  *api.Client
	watch   *server.Watcher
	traffic *traffic.Stream // nil between the phases
	phases  []traffic.Phase
	reached map[string]bool // URLs that have answered traffic
	// shown is the traffic for who follows the run, from another goroutine.
	shown atomic.Pointer[traffic.Stream]

	mu    sync.Mutex // guards the tasks' fields but def, left, watch and now
	now   doing
	tasks map[string]*taskRun
	names []string // in the order of their start
	left  []report.Leftover

	failures []string
}

// Run carries out the scenario and judges it. The report tells what failed;
// the error is about the scenario not being runnable at all. Everything it
// started is gone when it returns.
func (p *Plan) Run(ctx context.Context, o Options) (rep *report.Report, err error) {
	scene := *p.file
	f := &scene
	if o.StopOrder != "" {
		f.StopOrder = o.StopOrder
	}
	r := &runner{file: f, out: o.Progress, begun: time.Now(), tasks: p.tasks(), reached: map[string]bool{}}
	cluster, err := localecs.Open(localecs.Options{
		Name: f.Cluster, Region: f.Region, Account: f.Account,
		Network: p.network, Subnet: f.Subnet,
		AtOnce: f.StopOrder == file.StopAtOnce, GatePeriod: f.GatePeriod, TimeScale: f.TimeScale,
		Dir: o.Dir, Images: p.images, Roles: f.IdentityRoles(), Secrets: f.Secrets, EnvironmentFiles: p.environmentFiles,
		Observe: r.observe, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := cluster.Close(); closeErr != nil {
			rep, err = nil, errors.Join(err, fmt.Errorf("give back what the scenario held: %w", closeErr))
		}
	}()
	r.cluster = cluster
	r.tell(progress.Event{Kind: progress.Scenario, Text: fmt.Sprintf("scenario %s: %d tasks, stop order %s, Consul server at %s", f.Name, len(f.Tasks), f.StopOrder, f.Consul.Address)})

	r.beginOther("start the Consul server")
	defer o.Progress.Follow(r.state)()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(context.Canceled)
	watching.Go(func() { r.guard(ctx, cancel, cluster.Lost(), cluster.Err) })
	server, err := r.startConsul(ctx)
	if err != nil {
		return nil, r.why(ctx, err)
	}
	watching.Go(func() { r.guard(ctx, cancel, server.Done(), func() error { return r.serverEnded(server) }) })
	watching.Go(func() { r.watch.Run(ctx) })

	err = r.steps(ctx)
	r.endTraffic(file.EndTraffic{})
	if err == nil {
		r.check(ctx)
	}
	if why := r.why(ctx, nil); why != nil {
		return nil, why
	}
	if hostcap.Fault(err) {
		return nil, err
	}
	if err != nil {
		r.fail("%v", err)
	}
	return r.report(), nil
}

// guard ends the run when something ends that it cannot do without.
func (r *runner) guard(ctx context.Context, cancel context.CancelCauseFunc, ended <-chan struct{}, why func() error) {
	select {
	case <-ended:
		cancel(why())
	case <-ctx.Done():
	}
}

// why is the reason behind err: somebody has killed what all containers hang
// on, or has ended the run.
func (r *runner) why(ctx context.Context, err error) error {
	if lost := r.cluster.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (r *runner) fail(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// serverEnded is why the Consul server is gone.
func (r *runner) serverEnded(s *infra.Running) error {
	if lost := r.cluster.Err(); lost != nil {
		return lost
	}
	return fmt.Errorf("the Consul server has ended: %s (log: %s)", lastLine(s.LogFile), s.LogFile)
}

func (r *runner) startConsul(ctx context.Context) (*infra.Running, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpLimit)
	defer cancel()
	c := &r.file.Consul
	token := uuid.New().String()
	running, err := r.cluster.StartService(infra.Service{
		Name: "consul-server", Image: c.Image, Args: server.Args(c, token), Address: c.Address, Ports: server.Ports(), Dirs: []string{"/consul/data"},
	})
	if err != nil {
		return nil, fmt.Errorf("start consul server: %w", err)
	}
	r.client, err = consulutil.NewClient(consulutil.Options{
		Address: "http://" + c.Address + ":8500", Token: token,
		Timeout: time.Minute, DialContext: r.cluster.Dial,
	})
	if err != nil {
		return nil, err
	}
	if err := server.WaitLeader(ctx, r.client, running.Done()); err != nil {
		return nil, fmt.Errorf("wait for consul server: %w: %s (log: %s)", err, lastLine(running.LogFile), running.LogFile)
	}
	secrets, err := server.SetUp(ctx, c, r.client, r.cluster.AWSEndpoint())
	if err != nil {
		return nil, fmt.Errorf("set up consul: %w", err)
	}
	for name, value := range secrets {
		r.cluster.PutSecret(name, value)
	}
	r.tell(progress.Event{Kind: progress.Consul, Address: c.Address, Text: "leader elected, ACLs on, default deny"})
	r.mu.Lock()
	r.watch = server.NewWatcher(r.client, r.consulChanged)
	r.mu.Unlock()
	return running, nil
}

// observe is the cluster's observer: it tells the event and notes the moment.
// That an image is there is no news: it is on this machine.
func (r *runner) observe(e localecs.Event) {
	r.mu.Lock()
	if t := r.tasks[e.Task]; t != nil {
		t.moments.Observe(e, t.application)
	}
	r.mu.Unlock()
	if e.What == "status" && e.Value == scheduler.StatusPulled {
		return
	}
	text := e.Value
	if e.What == "desired" {
		text = "asked to stop"
	}
	if e.Detail != "" {
		text += " (" + brief(e.Detail) + ")"
	}
	r.tell(progress.Event{
		Time: e.At, Kind: progress.Kind(e.What), Task: e.Task, Container: e.Container,
		Status: e.Value, Detail: e.Detail, Text: text,
	})
}

// brief is a reason without the engine's words, also after its stop code.
func brief(reason string) string {
	code, rest, ok := strings.Cut(reason, ": ")
	if code == scheduler.StopTaskFailedToStart && ok {
		return code + ": " + runtime.Brief(rest)
	}
	return runtime.Brief(reason)
}

// consulChanged notes a check's new status.
func (r *runner) consulChanged(at time.Time, c *api.HealthCheck, status string) {
	checks, _ := r.watch.Now()
	r.mu.Lock()
	name, t := r.taskOf(c.ServiceID)
	if t != nil {
		t.moments.ConsulChanged(at, status == api.HealthPassing, checks.InTraffic(t.task.ID()))
	}
	r.mu.Unlock()
	if t != nil {
		r.tell(progress.Event{
			Time: at, Kind: progress.Check, Task: name, Service: c.ServiceName, Check: c.Name,
			Status: status, Text: c.Name + " (" + c.ServiceName + "): " + status,
		})
	}
}

// taskOf finds the task that a service belongs to. The caller holds r.mu.
func (r *runner) taskOf(serviceID string) (string, *taskRun) {
	for name, t := range r.tasks {
		if t.task != nil && server.HasTask(serviceID, t.task.ID()) {
			return name, t
		}
	}
	return "", nil
}
