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
	Docker   string
	Progress Progress
	// StopOrder replaces the scenario's; empty leaves it.
	StopOrder string
	// Seed replaces the scenario's; nil leaves it.
	Seed *uint64
	// Record records the run for its timeline; nil for a run without one.
	Record *Recording
	// Observer, if any, judges the run in place of the scenario's checks.
	Observer *Recorder
	// Attend, if any, is called with the run once there is a cluster; leave is called
	// when nothing runs any more.
	Attend func(*LiveRun) (leave func())
	// Stop, when it is closed, stops all tasks in order in a run without a Consul server.
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
	out   Progress
	// observer is nil when the checks judge.
	observer *Recorder
	record   *Recording
	notifier *Notifier
	started  time.Time
	clock    Clock
	fleet    *Fleet
	cluster  *cluster.Cluster // the fleet's
	look     Look
	watch    *Watcher
	faults   *Schedule
	traffic  *TrafficStream // nil between the phases
	phases   []Phase
	reached  map[string]bool // URLs that have answered traffic
	last     *TrafficStream  // also after its end

	live    *LiveRun
	leaving *Watch
	prefix  map[string]string // of lines of output, by task and container

	mu       sync.Mutex // guards what follows, and watch
	now      Step
	failures []string
}

// Run carries out the plan and judges it. The report has what failed; the error is
// about a plan that could not be carried out. When ctx ends, everything is killed and
// the error is the cause. Everything it started is gone when it returns.
func (p *Plan) Run(ctx context.Context, o Options) (rep *Report, err error) {
	r := p.runner(o)
	fleet, err := p.open(r, o)
	if err != nil {
		return nil, err
	}
	cluster := fleet.Cluster()
	r.fleet, r.cluster, r.live = fleet, cluster, NewLiveRun(r.file, r.tasks, fleet.Region())
	defer r.attended(o)()
	defer func() {
		if closeErr := fleet.Close(); closeErr != nil {
			rep, err = nil, errors.Join(err, fmt.Errorf("release what the run held: %w", closeErr))
		}
	}()
	r.emit(Event{Kind: KindScenario, Text: r.title()})
	defer o.Progress.Follow(r.state)()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(context.Canceled)
	watching.Go(func() { r.guard(ctx, cancel, cluster.Lost(), cluster.Err) })
	if p.alone != nil {
		err = r.runAlone(ctx, p.alone, o.Stop)
	} else {
		err = r.runScenario(ctx, cancel, &watching)
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
func (r *runner) runScenario(ctx context.Context, cancel context.CancelCauseFunc, watching *sync.WaitGroup) error {
	r.beginOther("start the Consul server")
	consul, err := r.startConsul(ctx)
	if err != nil {
		return err
	}
	watching.Go(func() { r.guard(ctx, cancel, consul.Done(), func() error { return r.serverEnded(consul) }) })
	r.lookOn(ctx, watching)
	err = r.runSteps(ctx, consul)
	r.endTraffic(file.EndTraffic{})
	if r.live.Ended() {
		r.beginOther("stop all tasks")
		return cmp.Or(r.live.Drain(ctx, stopAll), ErrEnded)
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
		plan: p, file: &f, prefix: p.prefixes(o.Colour), out: o.Progress, observer: o.Observer, record: o.Record, started: time.Now(),
		tasks: p.taskSet(), reached: map[string]bool{},
	}
	r.notifier = NewNotifier(r.tasks, r.record, r.emit)
	r.record.Start(f.Name, f.StopOrder, r.started)
	return r
}

// attended gives others access to the run, until leave.
func (r *runner) attended(o Options) (leave func()) {
	if o.Attend == nil {
		return func() {}
	}
	return o.Attend(r.live)
}

// lookOn follows the state of Consul until ctx ends.
func (r *runner) lookOn(ctx context.Context, watching *sync.WaitGroup) {
	watching.Go(func() { r.watch.Run(ctx) })
	watching.Go(func() { FollowTokens(ctx, r.look.Client, r.notifier.TokenChanged) })
	watching.Go(func() { Redirect(ctx, r.look.Client, r.cluster.AWSEndpoint()) })
	if r.observer != nil {
		watching.Go(func() { r.observer.Watch(ctx, r.look.Client) })
	}
}

// open opens the region that tasks run in.
func (p *Plan) open(r *runner, o Options) (*Fleet, error) {
	f := r.file
	var output func(task, container string, line []byte)
	if p.alone != nil {
		output = r.output
	}
	return Open(FleetOptions{
		Cluster: cluster.Options{
			Name: f.Cluster, Region: f.Region, Account: f.Account,
			Network: p.network, Subnet: f.Subnet,
			AtOnce: f.StopOrder == file.StopAtOnce, GatePeriod: f.GatePeriod, TimeScale: f.TimeScale,
			Docker: o.Docker, Dir: o.Dir, Images: p.images, Roles: p.roles, Secrets: f.Secrets, EnvironmentFiles: p.environmentFiles,
			Observe: r.notifier.ClusterChanged, Output: output, Log: o.Log,
		},
		API: f.API, Files: p.defs.Files, Expected: r.expect, Joined: r.joined, Log: o.Log,
	})
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
	running, client, err := StartServer(ctx, r.cluster, &r.file.Consul, token)
	if err != nil {
		return nil, err
	}
	r.look = Look{Client: client, Checks: r.file.Checks}
	r.emit(Event{Kind: KindConsul, Address: r.file.Consul.Address, Text: "leader elected, ACLs on, default deny"})
	r.mu.Lock()
	r.watch = NewWatcher(client, func(at time.Time, c *api.HealthCheck, status string) {
		checks, _ := r.watch.Now()
		r.notifier.CheckChanged(at, c, status, checks)
	})
	r.mu.Unlock()
	r.leaving = &Watch{Tasks: r.tasks, Look: r.look, Emit: r.emit}
	r.live.HasConsul(r.watch, token)
	return running, nil
}
