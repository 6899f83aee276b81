package controlplane

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const maxReason = 1024

// taskAPI has the calls about tasks and container instances.
type taskAPI struct {
	state     *state
	lifecycle *taskLifecycle
}

// ListTasks lists the tasks of a cluster whose desired status is RUNNING, or the
// given one; none is ever PENDING.
func (a *taskAPI) ListTasks(call shapes.Call, in shapes.ListTasksInput) (shapes.ListTasksOutput, error) {
	out := shapes.ListTasksOutput{TaskARNs: []string{}}
	err := cmp.Or(
		enum("desiredStatus", []string{in.DesiredStatus}, "RUNNING", "PENDING", "STOPPED"),
		checkLaunchType(in.LaunchType))
	if err != nil {
		return out, err
	}
	if in.StartedBy != "" && in.Family+in.ServiceName+in.ContainerInstance+in.LaunchType != "" {
		return out, shapes.Invalid("startedBy must be the only filter.")
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	if in.DaemonName != "" {
		return out, notSupported("daemonName")
	}
	if in.ContainerInstance != "" {
		return out, shapes.Invalid("The referenced container instance was not found.")
	}
	if in.ServiceName != "" {
		v, err := a.state.service(in.Cluster, in.ServiceName)
		if err != nil {
			return out, err
		}
		in.ServiceName = v.Name
	}
	in.DesiredStatus = cmp.Or(in.DesiredStatus, shapes.Running)
	at := call.Now.Add(-a.state.options.Lag.Lists)
	listed := func(r *Record) bool {
		return r.Cluster == c.name && r.Matches(in) && r.Listed(at, call.Now) == in.DesiredStatus
	}
	scope := strings.Join([]string{"tasks", c.name, in.Family, in.StartedBy, in.ServiceName, in.DesiredStatus,
		in.LaunchType}, " ")
	found, next, err := Page(a.state.records, listed, in.PageInput, scope, call.Now, false, (*Record).Key)
	out.NextToken = next
	for _, r := range found {
		out.TaskARNs = append(out.TaskARNs, r.Task.TaskARN)
	}
	return out, err
}

// DescribeTasks finds tasks by ID or ARN, stopped ones for an hour.
func (a *taskAPI) DescribeTasks(call shapes.Call, in shapes.DescribeTasksInput) (shapes.TasksOutput, error) {
	out := shapes.TasksOutput{Tasks: []shapes.Task{}, Failures: []shapes.Failure{}}
	if len(in.Tasks) == 0 {
		return out, shapes.Invalid("Tasks cannot be empty.")
	}
	if err := cmp.Or(atMost("taskIds", len(in.Tasks), MaxDescribed), enum("include", in.Include, "TAGS")); err != nil {
		return out, err
	}
	err := a.state.each(in.Cluster, in.Tasks, a.state.account.TaskID, func(c *cluster, id string) {
		r := a.state.task(c, id, call.Now)
		if r == nil || call.Now.Sub(r.Task.CreatedAt.Time) < a.state.options.Lag.New {
			out.Failures = append(out.Failures,
				shapes.Failure{ARN: a.state.account.Task(c.name, id), Reason: shapes.Missing})
			return
		}
		out.Tasks = append(out.Tasks, r.Shape(call.Now, a.state.options.Lag, slices.Contains(in.Include, "TAGS")))
	})
	return out, err
}

// ReportedTask is a task as DescribeTasks shows it, with its tags, and the last report of it.
type ReportedTask struct {
	shapes.Task
	Report Report
}

// Tasks returns the tasks of all clusters by creation, without delay, stopped ones for an hour.
func (a *taskAPI) Tasks(now time.Time) []ReportedTask {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	var all []ReportedTask
	for _, r := range a.state.records {
		if r.visible(now) {
			all = append(all, ReportedTask{Task: r.Shape(now, Lag{}, true), Report: r.report})
		}
	}
	return all
}

func (s *state) task(c *cluster, id string, now time.Time) *Record {
	if r := s.tasks[id]; r.Is(c.name, now) {
		return r
	}
	return nil
}

// StopTask requests a task to stop, and removes its tags. It does not change a task
// that is stopping already.
func (a *taskAPI) StopTask(call shapes.Call, in shapes.StopTaskInput) (shapes.TaskOutput, error) {
	if err := short("reason", in.Reason, maxReason); err != nil {
		return shapes.TaskOutput{}, err
	}
	in.Reason = cmp.Or(in.Reason, scheduler.StoppedByUser)
	a.state.mu.Lock()
	defer a.state.unlock()
	c, err := a.state.cluster(in.Cluster)
	if err != nil {
		return shapes.TaskOutput{}, err
	}
	id, err := a.state.account.TaskID(c.name, in.Task)
	if err != nil {
		return shapes.TaskOutput{}, err
	}
	r := a.state.task(c, id, call.Now)
	if r == nil {
		return shapes.TaskOutput{}, shapes.Invalid("The referenced task was not found.")
	}
	r.Task.Tags = nil
	a.lifecycle.stop(r, scheduler.StopUserInitiated, in.Reason, call.Now)
	return shapes.TaskOutput{Task: r.Shape(call.Now, Lag{}, true)}, nil
}

func (l *taskLifecycle) stop(r *Record, code, reason string, now time.Time) {
	if r.Task.DesiredStatus != shapes.Stopped {
		r.Stop(code, reason, now)
		r.Task.Version++
		l.state.version(r, now)
		l.handOverStop(r)
	}
}

func (l *taskLifecycle) handOverStop(r *Record) {
	id, code, reason := r.ID, r.Task.StopCode, r.Task.StoppedReason
	l.state.handover = append(l.state.handover, func() { l.state.options.Launcher.Stop(id, code, reason) })
}

// StartTask finds none of its container instances.
func (a *taskAPI) StartTask(_ shapes.Call, in shapes.ContainerInstancesInput) (shapes.TasksOutput, error) {
	out := shapes.TasksOutput{Tasks: []shapes.Task{}, Failures: []shapes.Failure{}}
	if len(in.ContainerInstances) == 0 {
		return out, shapes.Invalid("Container instances cannot be empty.")
	}
	if err := atMost("containerInstances", len(in.ContainerInstances), maxCount); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	if _, err := a.state.definition(in.TaskDefinition); err != nil {
		return out, err
	}
	out.Failures = a.noInstances(c, in.ContainerInstances)
	return out, nil
}

func (a *taskAPI) noInstances(c *cluster, refs []string) []shapes.Failure {
	failures := []shapes.Failure{}
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "arn:") {
			ref = a.state.account.ContainerInstance(c.name, ref)
		}
		failures = append(failures, shapes.Failure{ARN: ref, Reason: shapes.Missing})
	}
	return failures
}

// ListContainerInstances finds none: all tasks are Fargate's.
func (a *taskAPI) ListContainerInstances(_ shapes.Call,
	in shapes.ContainerInstancesInput) (shapes.ListContainerInstancesOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	_, err := a.state.cluster(in.Cluster)
	return shapes.ListContainerInstancesOutput{ARNs: []string{}}, err
}

// DescribeContainerInstances finds none either.
func (a *taskAPI) DescribeContainerInstances(_ shapes.Call,
	in shapes.ContainerInstancesInput) (shapes.ContainerInstancesOutput, error) {
	out := shapes.ContainerInstancesOutput{ContainerInstances: []struct{}{}}
	if len(in.ContainerInstances) == 0 {
		return out, shapes.Invalid("Container instance cannot be empty.")
	}
	if err := atMost("instanceIds", len(in.ContainerInstances), MaxDescribed); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(in.Cluster)
	if err == nil {
		out.Failures = a.noInstances(c, in.ContainerInstances)
	}
	return out, err
}
