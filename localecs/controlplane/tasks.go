package controlplane

import (
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/input"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// maxReason is the length of a stopped reason.
const maxReason = 1024

// defaultReason is StopTask's (spec/ecs-semantics.md section 10 item 1: assumed).
const defaultReason = "Task stopped by user"

// ListTasks lists the tasks of a cluster whose desired status is RUNNING, or the
// given one; none is ever PENDING.
func (p *Plane) ListTasks(call ecs.Call, in ecs.ListTasksInput) (ecs.ListTasksOutput, error) {
	out := ecs.ListTasksOutput{TaskARNs: []string{}}
	err := input.FirstOf(
		input.Enum("desiredStatus", []string{in.DesiredStatus}, "RUNNING", "PENDING", "STOPPED"),
		input.Enum("launchType", []string{in.LaunchType}, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"))
	if err != nil {
		return out, err
	}
	if in.StartedBy != "" && in.Family+in.ServiceName+in.ContainerInstance+in.LaunchType != "" {
		return out, ecs.Invalid("startedBy must be the only filter.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(call.Now)
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	if in.ContainerInstance != "" {
		return out, ecs.Invalid("The referenced container instance was not found.")
	}
	if in.ServiceName != "" {
		if in.ServiceName, err = p.account.ServiceName(c.name, in.ServiceName); err != nil {
			return out, err
		}
	}
	if in.DesiredStatus == "" {
		in.DesiredStatus = ecs.Running
	}
	at := call.Now.Add(-p.lag.Lists)
	listed := func(r *record.Record) bool {
		return r.Cluster == c.name && r.Matches(in) && r.Listed(at, call.Now) == in.DesiredStatus
	}
	scope := strings.Join([]string{"tasks", c.name, in.Family, in.StartedBy, in.ServiceName, in.DesiredStatus, in.LaunchType}, " ")
	found, next, err := input.PageOf(p.records, listed, in.PageInput, scope, call.Now, input.Ascending, (*record.Record).Key)
	out.NextToken = next
	for _, r := range found {
		out.TaskARNs = append(out.TaskARNs, r.Task.TaskARN)
	}
	return out, err
}

// DescribeTasks finds tasks by ID or ARN, stopped ones for an hour.
func (p *Plane) DescribeTasks(call ecs.Call, in ecs.DescribeTasksInput) (ecs.TasksOutput, error) {
	out := ecs.TasksOutput{Tasks: []ecs.Task{}, Failures: []ecs.Failure{}}
	if len(in.Tasks) == 0 {
		return out, ecs.Invalid("Tasks cannot be empty.")
	}
	if err := input.FirstOf(input.AtMost("taskIds", len(in.Tasks), input.MaxDescribed), input.Enum("include", in.Include, "TAGS")); err != nil {
		return out, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	for _, ref := range in.Tasks {
		id, err := p.account.TaskID(c.name, ref)
		if err != nil {
			return out, err
		}
		r := p.task(c, id, call.Now)
		if r == nil || call.Now.Sub(r.Created) < p.lag.New {
			out.Failures = append(out.Failures, ecs.Failure{ARN: p.account.Task(c.name, id), Reason: ecs.Missing})
			continue
		}
		out.Tasks = append(out.Tasks, r.Shape(call.Now, p.lag, slices.Contains(in.Include, "TAGS")))
	}
	return out, nil
}

// task finds a visible task of a cluster; nil when there is none.
func (p *Plane) task(c *cluster, id string, now time.Time) *record.Record {
	if r := p.tasks[id]; r.Is(c.name, now) {
		return r
	}
	return nil
}

// StopTask asks a task to stop, and takes its tags. One that is stopping already
// stays as it is.
func (p *Plane) StopTask(call ecs.Call, in ecs.StopTaskInput) (ecs.TaskOutput, error) {
	if err := input.Short("reason", in.Reason, maxReason); err != nil {
		return ecs.TaskOutput{}, err
	}
	if in.Reason == "" {
		in.Reason = defaultReason
	}
	p.mu.Lock()
	c, err := p.cluster(in.Cluster)
	var id string
	if err == nil {
		id, err = p.account.TaskID(c.name, in.Task)
	}
	if err != nil {
		p.mu.Unlock()
		return ecs.TaskOutput{}, err
	}
	r := p.task(c, id, call.Now)
	if r == nil {
		p.mu.Unlock()
		return ecs.TaskOutput{}, ecs.Invalid("The referenced task was not found.")
	}
	r.Tags = nil
	asked := p.askToStop(r, scheduler.StopUserInitiated, in.Reason, call.Now)
	out := ecs.TaskOutput{Task: r.Shape(call.Now, record.Lag{}, true)}
	p.mu.Unlock()
	if asked {
		p.launcher.Stop(id, scheduler.StopUserInitiated, in.Reason)
	}
	return out, nil
}

// askToStop makes the desired status STOPPED, and says whether it was not.
func (p *Plane) askToStop(r *record.Record, code, reason string, now time.Time) bool {
	if r.Task.DesiredStatus == ecs.Stopped {
		return false
	}
	r.Stop(code, reason, now)
	r.Task.Version++
	p.observe(r.Shape(now, record.Lag{}, false), now)
	return true
}

// StartTask finds none of the container instances that it is to use.
func (p *Plane) StartTask(_ ecs.Call, in ecs.StartTaskInput) (ecs.TasksOutput, error) {
	out := ecs.TasksOutput{Tasks: []ecs.Task{}, Failures: []ecs.Failure{}}
	if len(in.ContainerInstances) == 0 {
		return out, ecs.Invalid("Container instances cannot be empty.")
	}
	if err := input.AtMost("containerInstances", len(in.ContainerInstances), maxCount); err != nil {
		return out, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	r, err := p.Find(in.TaskDefinition)
	if err != nil {
		return out, err
	}
	if r == nil {
		return out, ecs.Client("TaskDefinition not found.")
	}
	out.Failures = p.noInstances(c, in.ContainerInstances)
	return out, nil
}

// noInstances says of each container instance that it does not exist.
func (p *Plane) noInstances(c *cluster, refs []string) []ecs.Failure {
	failures := []ecs.Failure{}
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "arn:") {
			ref = p.account.ContainerInstance(c.name, ref)
		}
		failures = append(failures, ecs.Failure{ARN: ref, Reason: ecs.Missing})
	}
	return failures
}

// ListContainerInstances finds none: all tasks are Fargate's.
func (p *Plane) ListContainerInstances(_ ecs.Call, in ecs.ContainerInstancesInput) (ecs.ListContainerInstancesOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.cluster(in.Cluster)
	return ecs.ListContainerInstancesOutput{ARNs: []string{}}, err
}

// DescribeContainerInstances finds none either.
func (p *Plane) DescribeContainerInstances(_ ecs.Call, in ecs.ContainerInstancesInput) (ecs.ContainerInstancesOutput, error) {
	out := ecs.ContainerInstancesOutput{ContainerInstances: []struct{}{}}
	if len(in.ContainerInstances) == 0 {
		return out, ecs.Invalid("Container instance cannot be empty.")
	}
	if err := input.AtMost("instanceIds", len(in.ContainerInstances), input.MaxDescribed); err != nil {
		return out, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(in.Cluster)
	if err == nil {
		out.Failures = p.noInstances(c, in.ContainerInstances)
	}
	return out, err
}
