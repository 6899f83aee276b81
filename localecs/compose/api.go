package compose

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Operations returns the operations of the ECS API that a project has. They return its tasks, and
// former ones for an hour.
func (s *State) Operations() map[string]controlplane.Operation {
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

// listTasks is ListTasks, in one page.
func (s *State) listTasks(_ shapes.Call, in shapes.ListTasksInput) (shapes.ListTasksOutput, error) {
	out := shapes.ListTasksOutput{TaskARNs: []string{}}
	if err := s.inCluster(in.Cluster); err != nil {
		return out, err
	}
	if in.DesiredStatus == "" {
		in.DesiredStatus = scheduler.StatusRunning
	}
	for _, t := range s.all() {
		if t.View.DesiredStatus == in.DesiredStatus && (in.Family == "" || in.Family == t.Facts.Family) &&
			in.StartedBy+in.ServiceName+in.ContainerInstance == "" {
			out.TaskARNs = append(out.TaskARNs, t.Facts.TaskARN)
		}
	}
	return out, nil
}

// describeTasks is DescribeTasks.
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

// shape returns the task as DescribeTasks shows it.
func (t Task) shape(account shapes.Account, tags bool) shapes.Task {
	v := t.View
	out := shapes.Task{
		TaskARN: t.Facts.TaskARN, ClusterARN: t.Facts.ClusterARN, AvailabilityZone: t.Facts.AvailabilityZone,
		TaskDefinitionARN: account.TaskDefinition(t.Facts.Family, max(t.Definition.Revision, 1)),
		Group:             "family:" + t.Facts.Family, LaunchType: shapes.Fargate, PlatformVersion: "1.4.0", PlatformFamily: "Linux",
		CPU: t.Definition.CPU, Memory: t.Definition.Memory,
		DesiredStatus: v.DesiredStatus, LastStatus: lastStatus(v), StopCode: v.StopCode, StoppedReason: v.StoppedReason,
		Connectivity: "CONNECTED", Version: 1,
		CreatedAt: shapes.At(v.PullStartedAt), PullStartedAt: shapes.At(v.PullStartedAt), PullStoppedAt: shapes.At(v.PullStoppedAt),
		StartedAt: shapes.At(v.StartedAt), StoppingAt: shapes.At(v.StoppingAt), StoppedAt: shapes.At(v.StoppedAt), ExecutionStoppedAt: shapes.At(v.ExecutionStoppedAt),
		Attachments: []shapes.Attachment{}, Attributes: []shapes.NameValue{}, Containers: []shapes.Container{}, Tags: []shapes.Tag{},
		Overrides: shapes.Overrides{Containers: []shapes.ContainerOverride{}, Accelerators: []struct{}{}},
	}
	if tags {
		for _, tag := range t.Definition.Tags {
			out.Tags = append(out.Tags, shapes.Tag{Key: tag.Key, Value: tag.Value})
		}
	}
	for _, c := range v.Containers {
		f := t.Facts.Containers[c.Name]
		shown := shapes.Container{
			ContainerARN: f.ContainerARN, TaskARN: t.Facts.TaskARN, Name: c.Name, Image: c.Image, RuntimeID: f.DockerID,
			LastStatus: c.KnownStatus, ExitCode: c.ExitCode, Reason: c.Reason, HealthStatus: "UNKNOWN", CPU: "0",
			NetworkInterfaces: []shapes.NetworkInterface{{IPv4: t.Facts.Network.IP}},
		}
		if c.KnownStatus == scheduler.StatusNone || c.KnownStatus == scheduler.StatusPulled {
			shown.LastStatus = "PENDING"
		}
		if c.Health != nil && c.Health.Status != scheduler.HealthStarting {
			shown.HealthStatus = c.Health.Status
		}
		out.Containers = append(out.Containers, shown)
	}
	return out
}

// lastStatus is the task's status in the API, which has no NONE.
func lastStatus(v scheduler.View) string {
	if v.KnownStatus == scheduler.StatusNone {
		return "PENDING"
	}
	return v.KnownStatus
}
