package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	plan  *Plan
	file  *file.Scenario // the plan's, with what Options replace
	tasks *TaskSet
	out   func(Event)
	// observer is nil when the checks judge.
	observer *runRecorder
	record   *Recording
	started  time.Time
	clock    clock
	region   *cluster.Region
	cluster  *cluster.Cluster // the region's
	look     Look
	watch    *watcher
	faults   *Schedule
	server   consulServer
	traffic  *trafficStream // nil between the phases
	phases   []Phase
	reached  map[string]bool // URLs that have answered traffic
	last     *trafficStream  // also after its end

	// end ends the steps.
	end    context.CancelCauseFunc
	served map[string]bool   // the tasks that Consul sends traffic to
	prefix map[string]string // of lines of output, by task and container

	mu    sync.Mutex // guards what follows, and watch
	token string     // Consul's management token
	left  []ReportedLeftover
	// revisions are ARNs by file, asked the steps that wait for a task, by its name, and
	// numbers how many tasks a service has started so far.
	revisions map[string]string
	asked     map[string]chan cluster.TaskStart
	numbers   map[string]int
	now       currentStep
	shown     time.Time // when the last event was
	failures  []string
}

// Run carries out the plan and judges it. The report has what failed; the error is
// about a plan that could not be carried out. When ctx ends, everything is killed and
// the error is the cause. Everything it started is gone when it returns.
func (p *Plan) Run(ctx context.Context, o Options) (rep *Report, err error) {
	r := p.runner(o)
	if err := r.open(o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	steps, end := context.WithCancelCause(ctx)
	r.end = end
	defer r.attended(o)()
	defer func() {
		if closeErr := r.region.Close(); closeErr != nil {
			rep, err = nil, errors.Join(err, fmt.Errorf("release what the run held: %w", closeErr))
		}
	}()
	r.emit(Event{Kind: KindScenario, Text: r.title()})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(context.Canceled) // steps, too
	watching.Go(func() { r.guard(ctx, cancel, r.cluster.Lost(), r.cluster.Err) })
	watching.Go(func() { r.breakSilences(ctx) })
	if p.alone != nil {
		err = r.runAlone(ctx, steps, p.alone, o.Stop)
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
		return fmt.Sprintf("%s: logs and metadata in %s", f.Name, r.cluster.LogDir())
	}
	return fmt.Sprintf("scenario %s: %s, stop order %s, Consul server at %s", f.Name, f.Size(), f.StopOrder, f.Consul.Address)
}

// runScenario starts the Consul server, carries out the steps and judges the result.
// A step that fails is a failure of the run; the error is about a run that could not
// be carried out.
func (r *runner) runScenario(ctx, steps context.Context, cancel context.CancelCauseFunc, watching *sync.WaitGroup) error {
	r.beginExtraStep("start the Consul server")
	consul, err := r.startConsul(ctx)
	if err != nil {
		return err
	}
	watching.Go(func() { r.guard(ctx, cancel, consul.Done(), func() error { return r.serverEnded(consul) }) })
	r.followConsul(ctx, watching)
	err = r.runSteps(ctx, steps, consul)
	r.endTraffic(file.EndTraffic{})
	if ctx.Err() == nil && steps.Err() != nil {
		r.beginExtraStep("stop all tasks")
		return cmp.Or(r.region.Drain(ctx, stopAll), errEnded)
	}
	r.judge(ctx, err)
	if host.Fault(err) {
		return err
	}
	if err != nil {
		r.fail("%v", err)
	}
	return nil
}

// runner returns a runner of the plan.
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
	r := &runner{
		plan: p, file: &f, prefix: p.prefixes(o.Colour), out: o.Progress, observer: o.observer, record: o.Record, started: time.Now(),
		tasks: p.taskSet(), reached: map[string]bool{}, served: map[string]bool{},
		revisions: map[string]string{}, asked: map[string]chan cluster.TaskStart{}, numbers: map[string]int{},
	}
	r.record.Start(f.Name, f.StopOrder, r.started)
	return r
}

// attended gives others access to the run, until leave.
func (r *runner) attended(o Options) (leave func()) {
	if o.Attend == nil {
		return func() {}
	}
	return o.Attend(LiveRun{r})
}

// followConsul follows the state of Consul until ctx ends.
func (r *runner) followConsul(ctx context.Context, watching *sync.WaitGroup) {
	watching.Go(func() { r.watch.Run(ctx) })
	watching.Go(func() { followTokens(ctx, r.look.Client, r.tokenChanged) })
	watching.Go(func() { Redirect(ctx, r.look.Client, r.cluster.AWSEndpoint()) })
	if r.observer != nil {
		watching.Go(func() { r.observer.Watch(ctx, r.look.Client) })
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
	if lost := r.cluster.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (r *runner) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// serverEnded returns why the Consul server has exited.
func (r *runner) serverEnded(s *cluster.Running) error {
	if lost := r.cluster.Err(); lost != nil {
		return lost
	}
	return fmt.Errorf("consul server exited unexpectedly: %s (log: %s)", cluster.LastLine(s.LogFile), s.LogFile)
}

func (r *runner) startConsul(ctx context.Context) (*cluster.Running, error) {
	token := uuid.New().String()
	running, client, err := startServer(ctx, r.cluster, &r.file.Consul, token)
	if err != nil {
		return nil, err
	}
	r.look = Look{Client: client, Checks: r.file.Checks}
	r.emit(Event{Kind: KindConsul, Address: r.file.Consul.Address, Text: "leader elected, ACLs on, default deny"})
	r.mu.Lock()
	r.watch = newWatcher(client, func(at time.Time, c *api.HealthCheck, status string) {
		checks, _ := r.watch.Now()
		r.checkChanged(at, c, status, checks)
	})
	r.token = token
	r.mu.Unlock()
	return running, nil
}
