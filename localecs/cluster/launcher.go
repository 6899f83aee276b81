package cluster

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/inflight"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

type launcher struct {
	cluster *Cluster
	name    func(controlplane.Launch) string
	started func(TaskStart)
	// skipWarnings is Options.SkipWarnings.
	skipWarnings bool
	log          hclog.Logger
	running      inflight.Group // the tasks' goroutines

	mu    sync.Mutex
	tasks map[string]*slot // by ID, from its launch until it has been released
	// warned are the revisions whose warnings were logged.
	warned map[string]bool
}

// slot holds a task from its launch on.
type slot struct {
	launch controlplane.Launch
	task   *Task         // nil until its first report
	done   chan struct{} // closed when the task has been released
}

func newLauncher(c *Cluster, o RegionOptions) *launcher {
	l := &launcher{
		cluster: c, name: o.Name, started: o.Started, skipWarnings: o.SkipWarnings, log: o.Log,
		tasks: map[string]*slot{}, warned: map[string]bool{},
	}
	if l.name == nil {
		l.name = func(in controlplane.Launch) string { return in.Definition.Family + "-" + in.ID }
	}
	if l.started == nil {
		l.started = func(start TaskStart) {
			if start.Err != nil {
				l.log.Warn("task could not be started", logkey.TaskID, start.Launch.ID, logkey.Error, start.Err)
			}
		}
	}
	return l
}

// Launch implements controlplane.Launcher.
func (l *launcher) Launch(in controlplane.Launch) {
	end, ok := l.running.Begin()
	if !ok { // a call that came while all ends
		failed := failedReport(in, "", errClosed)
		in.Report(failed, time.Now())
		failed.Gone = true
		in.Report(failed, time.Now())
		return
	}
	s := &slot{launch: in, done: make(chan struct{})}
	l.mu.Lock()
	l.tasks[in.ID] = s
	arn := in.Definition.TaskDefinitionARN
	warned := l.skipWarnings || l.warned[arn]
	l.warned[arn] = true
	l.mu.Unlock()
	if !warned {
		for _, text := range runtime.Unfaithful(in.Definition) {
			l.log.Warn("task definition has settings that are not emulated", logkey.Path, arn, logkey.Reason, text)
		}
	}
	name := l.name(in)
	go func() {
		defer end()
		l.run(s, name)
	}()
}

func (l *launcher) run(s *slot, name string) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.tasks, s.launch.ID)
		close(s.done)
	}()
	in := s.launch
	task, err := l.cluster.launch(launchOptions{Launch: in, Name: name, Observe: func(t *Task, v scheduler.View) {
		l.mu.Lock()
		s.task = t
		l.mu.Unlock()
		in.Report(report(t, v), time.Now())
	}})
	var last controlplane.Report
	if err != nil {
		last = failedReport(in, name, err)
		in.Report(last, time.Now())
	}
	l.started(TaskStart{Launch: in, Name: name, Task: task, Err: err})
	if err == nil {
		<-task.Done()
		last = report(task, task.View())
	}
	last.Gone = true
	in.Report(last, time.Now())
}

// open returns the tasks that have not been released, those that are being made included.
func (l *launcher) open() []*slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.tasks))
}

// reason returns the stop reason in the API of a task that could not be made; for a role that does not exist it is
// AWS's.
func reason(in controlplane.Launch, err error) string {
	if errors.Is(err, iam.ErrNoRole) {
		return "ECS was unable to assume the role '" + in.Definition.TaskRoleARN + "' " +
			"that was provided for this task. Please verify that the role being passed has the proper trust relationship " +
			"and permissions and that your IAM user has permissions to pass this role."
	}
	return "ResourceInitializationError: " + err.Error()
}

func report(t *Task, v scheduler.View) controlplane.Report {
	facts := t.Facts()
	return controlplane.Report{Name: t.name, View: v, Network: &facts.Network, Containers: facts.Containers}
}

// failedReport returns the state of a task that could not be made.
func failedReport(in controlplane.Launch, name string, err error) controlplane.Report {
	now := time.Now()
	state := scheduler.New(in.Definition, scheduler.Options{}, now)
	state.Apply(scheduler.StopRequested{Code: scheduler.StopTaskFailedToStart, Reason: reason(in, err)}, now)
	return controlplane.Report{Name: name, View: state.View()}
}

// Stop implements controlplane.Launcher.
func (l *launcher) Stop(id, code, reason string) {
	if t := l.task(id); t != nil {
		go t.stop(code, reason)
	}
}

// task returns a task that has been reported and not been released, or nil.
func (l *launcher) task(id string) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.tasks[id]; s != nil {
		return s.task
	}
	return nil
}
