package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Options say where a scenario runs.
type Options struct {
	// Dir takes logs and volumes; it is made when missing.
	Dir string
	// Docker is localecs.Options'.
	Docker string
	// Progress is told what happens.
	Progress Progress
	// StopOrder replaces the scenario's; empty leaves it.
	StopOrder string
	// Seed replaces the scenario's; nil leaves it.
	Seed *uint64
	// Record keeps what is seen, for pictures; nil for a run of which none is wanted.
	Record *Recording
	// Observer, if any, judges the run in place of the scenario's checks.
	Observer *Recorder
	// Attend, if any, is handed the run once there is a cluster; leave is called when
	// nothing runs any more.
	Attend func(*LiveRun) (leave func())
	Log    hclog.Logger
}

// runner carries out one scenario.
type runner struct {
	file  *file.Scenario
	tasks *Roster
	out   Progress
	// observer is nil when the checks judge.
	observer *Recorder
	record   *Recording
	news     *News
	begun    time.Time
	clock    Clock
	fleet    *Fleet
	cluster  *cluster.Cluster // the fleet's
	look     Look
	watch    *Watcher
	faults   *Schedule
	traffic  *TrafficStream // nil between the phases
	phases   []Phase
	reached  map[string]bool // URLs that have answered traffic
	// shown is the traffic for who follows the run, from another goroutine.
	shown atomic.Pointer[TrafficStream]

	live    *LiveRun
	leaving *Watch

	mu       sync.Mutex // guards what follows, and watch
	now      doing
	failures []string
}

// Run carries out the scenario and judges it. The report tells what failed;
// the error is about the scenario not being runnable at all. Everything it
// started is gone when it returns.
func (p *Plan) Run(ctx context.Context, o Options) (rep *Report, err error) {
	r := p.runner(o)
	f := r.file
	fleet, err := p.open(r, o)
	if err != nil {
		return nil, err
	}
	cluster := fleet.Cluster()
	r.fleet, r.cluster, r.live = fleet, cluster, NewLiveRun(f, r.tasks, fleet.Region())
	defer r.attended(o)()
	defer func() {
		if closeErr := fleet.Close(); closeErr != nil {
			rep, err = nil, errors.Join(err, fmt.Errorf("give back what the scenario held: %w", closeErr))
		}
	}()
	r.tell(Event{Kind: KindScenario, Text: fmt.Sprintf("scenario %s: %s, stop order %s, Consul server at %s", f.Name, f.Size(), f.StopOrder, f.Consul.Address)})

	r.beginOther("start the Consul server")
	defer o.Progress.Follow(r.state)()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(context.Canceled)
	watching.Go(func() { r.guard(ctx, cancel, cluster.Lost(), cluster.Err) })
	consul, err := r.startConsul(ctx)
	if err != nil {
		return nil, r.why(ctx, err)
	}
	watching.Go(func() { r.guard(ctx, cancel, consul.Done(), func() error { return r.serverEnded(consul) }) })
	r.lookOn(ctx, &watching)

	err = r.disturbed(ctx, consul)
	r.endTraffic(file.EndTraffic{})
	if r.live.Ended() {
		return nil, r.why(ctx, r.drain(ctx))
	}
	r.judge(ctx, err)
	if why := r.why(ctx, nil); why != nil {
		return nil, why
	}
	if host.Fault(err) {
		return nil, err
	}
	if err != nil {
		r.fail("%v", err)
	}
	return r.report(), nil
}

// runner is ready to begin.
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
		file: &f, out: o.Progress, observer: o.Observer, record: o.Record, begun: time.Now(),
		tasks: p.roster(), reached: map[string]bool{},
	}
	r.news = NewNews(r.tasks, r.record, r.tell)
	r.record.Start(f.Name, f.StopOrder, r.begun)
	return r
}

// attended lets others look on, until leave.
func (r *runner) attended(o Options) (leave func()) {
	if o.Attend == nil {
		return func() {}
	}
	return o.Attend(r.live)
}

// drain stops all tasks in order.
func (r *runner) drain(ctx context.Context) error {
	r.beginOther("stop all tasks")
	return r.live.Drain(ctx)
}

// lookOn follows what Consul knows until ctx ends.
func (r *runner) lookOn(ctx context.Context, watching *sync.WaitGroup) {
	watching.Go(func() { r.watch.Run(ctx) })
	watching.Go(func() { FollowTokens(ctx, r.look.Client, r.news.TokenChanged) })
	watching.Go(func() { Redirect(ctx, r.look.Client, r.cluster.AWSEndpoint()) })
	if r.observer != nil {
		watching.Go(func() { r.observer.Watch(ctx, r.look.Client) })
	}
}

// open makes what tasks run in.
func (p *Plan) open(r *runner, o Options) (*Fleet, error) {
	f := r.file
	return Open(FleetOptions{
		Cluster: cluster.Options{
			Name: f.Cluster, Region: f.Region, Account: f.Account,
			Network: p.network, Subnet: f.Subnet,
			AtOnce: f.StopOrder == file.StopAtOnce, GatePeriod: f.GatePeriod, TimeScale: f.TimeScale,
			Docker: o.Docker, Dir: o.Dir, Images: p.images, Roles: f.IdentityRoles(), Secrets: f.Secrets, EnvironmentFiles: p.environmentFiles,
			Observe: r.news.ClusterChanged, Log: o.Log,
		},
		API: f.API, Files: p.defs.Files, Expected: r.expect, Joined: r.joined, Log: o.Log,
	})
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// serverEnded is why the Consul server is gone.
func (r *runner) serverEnded(s *cluster.Running) error {
	if lost := r.cluster.Err(); lost != nil {
		return lost
	}
	return fmt.Errorf("the Consul server has ended: %s (log: %s)", cluster.LastLine(s.LogFile), s.LogFile)
}

func (r *runner) startConsul(ctx context.Context) (*cluster.Running, error) {
	token := uuid.New().String()
	running, client, err := StartServer(ctx, r.cluster, &r.file.Consul, token)
	if err != nil {
		return nil, err
	}
	r.look = Look{Client: client, Checks: r.file.Checks}
	r.tell(Event{Kind: KindConsul, Address: r.file.Consul.Address, Text: "leader elected, ACLs on, default deny"})
	r.mu.Lock()
	r.watch = NewWatcher(client, func(at time.Time, c *api.HealthCheck, status string) {
		checks, _ := r.watch.Now()
		r.news.CheckChanged(at, c, status, checks)
	})
	r.mu.Unlock()
	r.leaving = &Watch{Tasks: r.tasks, Look: r.look, Tell: r.tell}
	r.live.HasConsul(r.watch, token)
	return running, nil
}
