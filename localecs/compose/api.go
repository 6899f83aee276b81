package compose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// operations returns the operations of the ECS API that a project has. They return its tasks, and
// former ones for an hour.
func (s *State) operations() map[string]controlplane.Operation {
	return map[string]controlplane.Operation{"ListTasks": controlplane.Op(s.listTasks), "DescribeTasks": controlplane.Op(s.describeTasks)}
}

// all returns the current tasks and those of the last hour.
func (s *State) all() []Task {
	now := s.Tasks()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(now, s.past...)
}

// inCluster returns an error for a call about another cluster than the project's.
func (s *State) inCluster(ref string) error {
	name, err := s.cluster.Account.ClusterName(ref)
	if err == nil && name != s.cluster.Name {
		err = shapes.Errorf("ClusterNotFoundException", "Cluster not found.")
	}
	return err
}

// listTasks implements ListTasks, in one page.
func (s *State) listTasks(_ shapes.Call, in shapes.ListTasksInput) (shapes.ListTasksOutput, error) {
	out := shapes.ListTasksOutput{TaskARNs: []string{}}
	if err := s.inCluster(in.Cluster); err != nil {
		return out, err
	}
	in.DesiredStatus = cmp.Or(in.DesiredStatus, scheduler.StatusRunning)
	for _, t := range s.all() {
		if t.View.DesiredStatus == in.DesiredStatus && (in.Family == "" || in.Family == t.Facts.Family) &&
			in.StartedBy+in.ServiceName+in.ContainerInstance == "" {
			out.TaskARNs = append(out.TaskARNs, t.Facts.TaskARN)
		}
	}
	return out, nil
}

// describeTasks implements DescribeTasks.
func (s *State) describeTasks(_ shapes.Call, in shapes.DescribeTasksInput) (shapes.TasksOutput, error) {
	out := shapes.TasksOutput{Tasks: []shapes.Task{}, Failures: []shapes.Failure{}}
	if err := s.inCluster(in.Cluster); err != nil {
		return out, err
	}
	if len(in.Tasks) == 0 {
		return out, shapes.Invalid("Tasks cannot be empty.")
	}
	tasks := s.all()
	for _, ref := range in.Tasks {
		id := ref[strings.LastIndex(ref, "/")+1:]
		i := slices.IndexFunc(tasks, func(t Task) bool { return t.ID == id })
		if i < 0 {
			out.Failures = append(out.Failures, shapes.Failure{ARN: s.cluster.Account.Task(s.cluster.Name, id), Reason: shapes.Missing})
			continue
		}
		out.Tasks = append(out.Tasks, tasks[i].shape(s.cluster.Account, slices.Contains(in.Include, "TAGS")))
	}
	return out, nil
}

// shape returns the task as DescribeTasks shows it, with an interface of the engine's.
func (t Task) shape(account shapes.Account, tags bool) shapes.Task {
	f, v := t.Facts, t.View
	r := controlplane.Record{
		Launch: controlplane.Launch{ID: t.ID, Definition: t.Definition, ContainerARNs: map[string]string{}},
		Task: shapes.Task{
			TaskARN: f.TaskARN, ClusterARN: f.ClusterARN, AvailabilityZone: f.AvailabilityZone,
			TaskDefinitionARN: account.TaskDefinition(f.Family, max(t.Definition.Revision, 1)),
			Group:             "family:" + f.Family, LaunchType: shapes.Fargate,
			PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux",
			CPU: t.Definition.CPU, Memory: t.Definition.Memory,
			DesiredStatus: shapes.Running, CreatedAt: shapes.At(v.PullStartedAt),
			Attributes: []shapes.NameValue{},
			Overrides: shapes.Overrides{
				Containers: []shapes.ContainerOverride{}, Accelerators: []map[string]any{},
			},
		},
	}
	for _, tag := range t.Definition.Tags {
		r.Task.Tags = append(r.Task.Tags, shapes.Tag(tag))
	}
	for name, c := range f.Containers {
		r.ContainerARNs[name] = c.ContainerARN
	}
	report := controlplane.Report{View: v, Network: &f.Network, Containers: f.Containers, Gone: v.KnownStatus == scheduler.StatusStopped}
	r.Apply(report, cmp.Or(v.StoppedAt, v.PullStartedAt))
	out := r.Shape(time.Now(), controlplane.Lag{}, tags)
	out.Attachments = []shapes.Attachment{}
	return out
}
