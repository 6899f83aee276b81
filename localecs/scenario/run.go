package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Options are where and how a plan runs.
type Options struct {
	// Dir takes logs and volumes; it is made when missing.
	Dir string
	// Docker is that of cluster.Options.
	Docker string
	// Progress shows events. It is called by several goroutines and must not block.
	Progress func(Event)
	// StopOrder replaces the scenario's; empty leaves it.
	StopOrder string
	// Seed replaces the scenario's; nil leaves it.
	Seed *uint64
	// Listeners listen at the plan's Addresses.
	Listeners map[netip.AddrPort]*net.TCPListener
	// Record records the run for its timeline; nil for a run without one.
	Record *Recording
	// observer, if any, judges the run in place of the scenario's checks.
	observer *runRecorder
	// Attend, if any, is called with the run once there is a cluster; leave is called
	// when nothing runs any more.
	Attend func(LiveRun) (leave func())
	// Stop, when it is closed, stops all tasks as StopTask does in a run without a Consul server.
	Stop <-chan struct{}
	// Colour marks which container a line of output is from.
	Colour bool
	Log    hclog.Logger
}

// runner carries out one plan.
type runner struct {
	plan     *Plan
	file     *file.Scenario // the plan's, with what Options replace
	observer *runRecorder   // nil when the checks judge
	progress *progress
	tasks    *TaskSet
	ecs      *ecsTasks
	steps    *stepRunner // nil until the Consul server is ready
	log      hclog.Logger

	// end ends the steps.
	end context.CancelCauseFunc

	mu     sync.Mutex  // guards consul
	consul *consulView // nil until the server is ready
}

// Run carries out the plan and judges it. The report has what failed; the error is
// about a plan that could not be carried out. When ctx ends, everything is killed and
// the error is the cause. Everything it started is gone when it returns.
func (p *Plan) Run(ctx context.Context, o Options) (rep *Report, err error) {
	r := p.runner(o)
	if err := r.ecs.open(o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	steps, end := context.WithCancelCause(ctx)
	r.end = end
	if o.Attend != nil {
		defer o.Attend(LiveRun{r})()
	}
	defer func() {
		if closeErr := r.ecs.region.Close(); closeErr != nil {
			rep, err = nil, errors.Join(err, fmt.Errorf("release what the run held: %w", closeErr))
		}
	}()
	r.progress.emit(Event{Kind: KindScenario, Text: r.title()})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(context.Canceled) // steps, too
	watching.Go(func() { r.guard(ctx, cancel, r.ecs.cluster.Lost(), r.ecs.cluster.Err) })
	var waiting func() currentStep
	if p.alone != nil {
		waiting = r.waiting
	}
	watching.Go(func() { r.progress.breakSilences(ctx, waiting) })
	r.publish(ctx, o.Listeners, &watching)
	if p.alone != nil {
		if err = r.openOutside(ctx, &watching); err == nil {
			err = r.runAlone(ctx, steps, p.alone, o.Stop)
		}
	} else {
		err = r.runScenario(ctx, steps, cancel, &watching)
	}
	if err := r.why(ctx, err); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// title describes the run in a line.
func (r *runner) title() string {
	f := r.file
	if r.plan.alone != nil {
		return fmt.Sprintf("%s: logs and metadata in %s", f.Name, r.ecs.cluster.LogDir())
	}
	return fmt.Sprintf("scenario %s: %s, stop order %s, Consul server at %s", f.Name, f.Size(), f.StopOrder,
		f.Consul.Address)
}

// runScenario starts the Consul server, carries out the steps and judges the result.
// A step that fails is a failure of the run; the error is about a run that could not
// be carried out.
func (r *runner) runScenario(ctx, steps context.Context, cancel context.CancelCauseFunc,
	watching *sync.WaitGroup) error {
	r.progress.beginExtraStep("start the Consul server")
	server, err := r.startConsul(ctx)
	if err != nil {
		return err
	}
	watching.Go(func() { r.guard(ctx, cancel, server.Done(), func() error { return r.serverEnded(server) }) })
	if err := r.openOutside(ctx, watching); err != nil { // the server has the address that the file names
		return err
	}
	r.followConsul(ctx, watching)
	r.steps = r.newSteps(server)
	err = r.runSteps(ctx, steps, server)
	r.steps.traffic.end(file.EndTraffic{})
	if ctx.Err() == nil && steps.Err() != nil {
		r.progress.beginExtraStep("stop all tasks")
		return cmp.Or(r.ecs.region.Drain(ctx, stopAll), errEnded)
	}
	r.evaluate(ctx, err)
	if host.Fault(err) {
		return err
	}
	if err != nil {
		r.progress.fail("%v", err)
	}
	return nil
}

func (p *Plan) runner(o Options) *runner {
	f := *p.file
	if o.StopOrder != "" {
		f.StopOrder = o.StopOrder
	}
	if o.Seed != nil {
		f.Seed = *o.Seed
	}
	if o.Record == nil {
		o.Record = NewRecording()
	}
	tasks := p.taskSet()
	progress := &progress{
		scenario: f.Name, steps: len(f.Steps), record: o.Record, out: o.Progress, prefix: p.prefixes(o.Colour),
		started: time.Now(),
	}
	progress.record.Start(f.Name, f.StopOrder, progress.started)
	return &runner{
		plan: p, file: &f, observer: o.observer, progress: progress, tasks: tasks, log: o.Log,
		ecs: &ecsTasks{
			plan: p, file: &f, tasks: tasks, progress: progress,
			revisions: map[string]string{}, asked: map[string]chan cluster.TaskStart{}, numbers: map[string]int{},
			deployments: map[string]string{},
		},
	}
}

// followConsul follows the state of Consul until ctx ends.
func (r *runner) followConsul(ctx context.Context, watching *sync.WaitGroup) {
	client := r.consul.look.Client
	watching.Go(func() { r.consul.watch.Run(ctx) })
	watching.Go(func() { followTokens(ctx, client, r.consul.tokenChanged) })
	watching.Go(func() { Redirect(ctx, client, r.ecs.cluster.AWSEndpoint()) })
	if r.observer != nil {
		watching.Go(func() { r.observer.Watch(ctx, client) })
	}
}

// guard ends the run when something ends that it needs.
func (r *runner) guard(ctx context.Context, cancel context.CancelCauseFunc, ended <-chan struct{}, why func() error) {
	select {
	case <-ended:
		cancel(why())
	case <-ctx.Done():
	}
}

// why returns the cause of err: the process that all containers depend on has exited,
// or the run was ended.
func (r *runner) why(ctx context.Context, err error) error {
	return cmp.Or(r.ecs.cluster.Err(), context.Cause(ctx), err)
}

// serverEnded returns why the Consul server has exited.
func (r *runner) serverEnded(s *cluster.Running) error {
	exited := fmt.Errorf("consul server exited unexpectedly: %s (log: %s)", cluster.LastLine(s.LogFile), s.LogFile)
	return cmp.Or(r.ecs.cluster.Err(), exited)
}

func (r *runner) startConsul(ctx context.Context) (*cluster.Running, error) {
	token := uuid.New().String()
	running, client, err := startServer(ctx, r.ecs.cluster, &r.file.Consul, token)
	if err != nil {
		return nil, err
	}
	r.progress.emit(Event{Kind: KindConsul, Address: r.file.Consul.Address,
		Text: "leader elected, ACLs on, default deny"})
	view := &consulView{
		look: ConsulQuery{Client: client, Checks: r.file.Checks}, token: token, tasks: r.tasks, progress: r.progress,
		served: map[string]bool{},
	}
	view.watch = newWatcher(client, func(at time.Time, c *api.HealthCheck, status string) {
		checks, _ := view.watch.Now()
		view.checkChanged(at, c, status, checks)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consul = view
	return running, nil
}

// newSteps returns the runner of the steps, with the faults, traffic and clean-up that they control.
func (r *runner) newSteps(server consulServer) *stepRunner {
	faults := &faultInjector{file: r.file, tasks: r.tasks, cluster: r.ecs.cluster, server: server, progress: r.progress}
	faults.schedule = NewSchedule(faults.begin, faults.changed)
	return &stepRunner{
		file: r.file, ecs: r.ecs, tasks: r.tasks, consul: r.consul, faults: faults, progress: r.progress,
		observed: r.observer != nil,
		cleanup:  &cleanup{look: r.consul.look, tasks: r.tasks, progress: r.progress, observed: r.observer != nil},
		traffic: &trafficPhases{
			tasks: r.tasks, dial: r.ecs.cluster.Fabric().Infra().DialContext, progress: r.progress,
			observer: r.observer,
			reached:  map[string]bool{},
		},
	}
}

// runSteps carries out the steps under the faults of the file and its steps, and
// waits until the server takes writes again, which the checks need.
func (r *runner) runSteps(ctx, steps context.Context, consul *cluster.Running) error {
	err := r.steps.run(steps)
	never := r.steps.faults.schedule.End()
	if err != nil {
		return err
	}
	for _, f := range never {
		r.progress.fail("fault at %s: %s: the last step ended before", f.At, f)
	}
	return awaitLeader(ctx, r.consul.look.Client, consul)
}
