package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Progress shows a run to whoever follows it.
type PlainProgress interface {
	// Event is called by several goroutines and must not block.
	Event(Event)
	// Follow may ask look how the run is at any time, until end returns.
	Follow(look func() view.State) (end func())
}

// Options say how and where a plan runs.
type PlainOptions struct {
	// Docker is localecs.Options'.
	Docker string
	// Dir takes logs and volumes; it is made when missing.
	Dir string
	// StopOrder is file.StopAtOnce, or anything else for reverse.
	StopOrder string
	// Stop asks all tasks to stop when it is closed, in ECS's order.
	Stop     <-chan struct{}
	Progress PlainProgress
	// Attend is handed the region before the tasks start; leave is called when nothing
	// runs any more. nil is nobody.
	Attend func(*cluster.Region) (leave func())
	// Colour marks who says what.
	Colour bool
	Log    hclog.Logger
}

// run is one run of a plan.
type plainRun struct {
	plan    *PlainPlan
	out     PlainProgress
	begun   time.Time
	prefix  map[string]string // by task and container
	record  *Recording
	fleet   *Fleet
	started []started
}

// started is a task that was.
type started struct {
	plainTask
	*cluster.Task
}

// Run runs a task of each definition and waits for the end of all. When ctx ends,
// everything is killed and the error is the cause. Everything it started is gone
// when it returns.
func (p *PlainPlan) Run(ctx context.Context, o PlainOptions) (out *PlainOutcome, err error) {
	r := &plainRun{plan: p, out: o.Progress, begun: time.Now(), prefix: p.prefixes(o.Colour), record: NewRecording()}
	r.record.Start(p.Name(), o.order(), r.begun)
	if r.fleet, err = r.open(o); err != nil {
		return nil, err
	}
	if o.Attend != nil {
		defer o.Attend(r.fleet.Region())()
	}
	defer func() {
		if closeErr := r.fleet.Close(); closeErr != nil {
			out, err = nil, errors.Join(err, fmt.Errorf("give back what the tasks held: %w", closeErr))
		}
	}()
	cluster := r.fleet.Cluster()
	r.tell(Event{Kind: KindScenario, Text: fmt.Sprintf("%s: logs and metadata in %s", p.Name(), cluster.LogDir())})
	if err := r.start(); err != nil {
		return nil, err
	}
	defer o.Progress.Follow(r.state)()
	if err := r.wait(ctx, o.Stop); err != nil {
		_, saveErr := Save(o.Dir, *r.record.Broken(time.Now(), err))
		return nil, errors.Join(err, saveErr)
	}
	out = r.outcome(cluster.LogDir())
	out.History = r.record.Judged(time.Now(), out.Failures)
	if out.Picture, err = Save(o.Dir, *out.History); err != nil { // changes no verdict
		o.Log.Warn("timeline was not written", logkey.Error, err)
	}
	return out, nil
}

// order is how tasks are stopped.
func (o PlainOptions) order() string {
	if o.StopOrder == file.StopAtOnce {
		return file.StopAtOnce
	}
	return file.StopReverse
}

// open makes what tasks run in: a cluster with its ECS API.
func (r *plainRun) open(o PlainOptions) (*Fleet, error) {
	s := r.plan.setting
	files := map[string]*taskdef.TaskDefinition{}
	for _, t := range r.plan.tasks {
		files[t.path] = t.def
	}
	return Open(FleetOptions{
		Cluster: cluster.Options{
			Name: s.Cluster, Region: s.Region, Account: s.Account,
			Network: r.plan.network, Subnet: s.Subnet,
			AtOnce: o.StopOrder == file.StopAtOnce, GatePeriod: s.GatePeriod, TimeScale: s.TimeScale,
			Docker: o.Docker, Dir: o.Dir, Images: r.plan.images, Roles: r.plan.roles, Secrets: s.Secrets, EnvironmentFiles: r.plan.environmentFiles,
			Observe: r.observe, Output: r.output, Log: o.Log,
		},
		API: s.API, Files: files, Joined: func(cluster.Begun) {}, Log: o.Log,
	})
}

// start starts a task of each definition.
func (r *plainRun) start() error {
	for _, t := range r.plan.tasks {
		begun, err := r.fleet.Run(t.name, file.Task{Definition: t.path})
		if err != nil {
			return fmt.Errorf("start %s: %w", t.name, err)
		}
		r.started = append(r.started, started{t, begun})
		r.record.Begin(Task{Task: begun, Name: t.name, Definition: t.def})
		r.tell(Event{
			Kind: KindTask, Task: t.name, TaskID: begun.ID(), Address: begun.IP(),
			Text: fmt.Sprintf("task %s at %s, %s.%s.local", begun.ID(), begun.IP(), t.def.Family, r.plan.setting.Cluster),
		})
	}
	return nil
}

// wait waits until all tasks are over. It asks them to stop when stop is closed,
// and gives up when nothing can run any more.
func (r *plainRun) wait(ctx context.Context, stop <-chan struct{}) error {
	cluster := r.fleet.Cluster()
	for _, t := range r.started {
		for over := false; !over; {
			select {
			case <-t.Done():
				over = true
			case <-stop:
				stop = nil
				if err := r.stop(); err != nil {
					return err
				}
			case <-cluster.Lost():
				return cluster.Err()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return cluster.Err()
}

// stop asks every task to stop, as StopTask does.
func (r *plainRun) stop() error {
	var errs []error
	for _, t := range r.started {
		errs = append(errs, r.fleet.Stop(t.ID()))
	}
	return errors.Join(errs...)
}

// state is how the run is now.
func (r *plainRun) state() view.State {
	s := view.State{Scenario: r.plan.Name(), Begun: r.begun}
	var open []string
	for _, t := range r.started {
		v := t.View()
		s.Tasks = append(s.Tasks, view.Task{Name: t.name, Address: t.IP(), View: v})
		for _, c := range v.Containers {
			if why := waiting(c, t.def.Container(c.Name)); why != "" {
				open = append(open, r.plan.called(t.plainTask, c.Name)+" "+why)
			}
		}
	}
	// It is nothing that anybody waits for when all of them are as they should be.
	if len(open) > 0 {
		s.Step = view.Step{Text: "await " + strings.Join(open, ", "), Begun: r.begun}
	}
	return s
}
