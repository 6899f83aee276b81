package project

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/endpoints/ecsapi"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// Operations are what the ECS API can tell of a project: its tasks, and those
// before them for an hour. All others are unknown.
func (s *State) Operations() map[string]ecsapi.Operation {
	return map[string]ecsapi.Operation{"ListTasks": ecsapi.Op(s.listTasks), "DescribeTasks": ecsapi.Op(s.describeTasks)}
}

// all are the tasks of now and of the last hour.
func (s *State) all() []Task {
	now := s.Tasks()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(now, s.past...)
}

// inCluster tells whether a call is about the project's cluster, by its name or
// ARN; without one it is about the cluster default.
func (s *State) inCluster(ref string) error {
	if ref == "" {
		ref = "default"
	}
	if ref != s.cluster.Name && ref != s.cluster.ARN() {
		return ecs.Errorf("ClusterNotFoundException", "Cluster not found.")
	}
	return nil
}

// listTasks is ListTasks, in one page.
func (s *State) listTasks(_ ecs.Call, in ecs.ListTasksInput) (ecs.ListTasksOutput, error) {
	out := ecs.ListTasksOutput{TaskARNs: []string{}}
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
func (s *State) describeTasks(_ ecs.Call, in ecs.DescribeTasksInput) (ecs.TasksOutput, error) {
	out := ecs.TasksOutput{Tasks: []ecs.Task{}, Failures: []ecs.Failure{}}
	if err := s.inCluster(in.Cluster); err != nil {
		return out, err
	}
	if len(in.Tasks) == 0 {
		return out, ecs.Invalid("Tasks cannot be empty.")
	}
	tasks := s.all()
	for _, ref := range in.Tasks {
		id := ref[strings.LastIndex(ref, "/")+1:]
		i := slices.IndexFunc(tasks, func(t Task) bool { return t.ID == id })
		if i < 0 {
			prefix := strings.Replace(s.cluster.ARN(), ":cluster/", ":task/", 1) + "/"
			out.Failures = append(out.Failures, ecs.Failure{ARN: prefix + id, Reason: ecs.Missing})
			continue
		}
		out.Tasks = append(out.Tasks, tasks[i].shape(slices.Contains(in.Include, "TAGS")))
	}
	return out, nil
}

// shape is the task as DescribeTasks shows it.
func (t Task) shape(tags bool) ecs.Task {
	v := t.View
	out := ecs.Task{
		TaskARN: t.Facts.TaskARN, ClusterARN: t.Facts.ClusterARN, AvailabilityZone: t.Facts.AvailabilityZone,
		TaskDefinitionARN: strings.Replace(t.Facts.TaskARN[:strings.Index(t.Facts.TaskARN, "/")], ":task", ":task-definition/", 1) + t.Facts.Family + ":" + t.Facts.Revision,
		Group:             "family:" + t.Facts.Family, LaunchType: t.Facts.LaunchType, PlatformVersion: "1.4.0", PlatformFamily: "Linux",
		CPU: t.Definition.CPU, Memory: t.Definition.Memory,
		DesiredStatus: v.DesiredStatus, LastStatus: lastStatus(v), StopCode: v.StopCode, StoppedReason: v.StoppedReason,
		Connectivity: "CONNECTED", Version: 1,
		CreatedAt: ecs.At(v.PullStartedAt), PullStartedAt: ecs.At(v.PullStartedAt), PullStoppedAt: ecs.At(v.PullStoppedAt),
		StartedAt: ecs.At(v.StartedAt), StoppingAt: ecs.At(v.StoppingAt), StoppedAt: ecs.At(v.StoppedAt), ExecutionStoppedAt: ecs.At(v.ExecutionStoppedAt),
		Attachments: []ecs.Attachment{}, Attributes: []ecs.NameValue{}, Containers: []ecs.Container{}, Tags: []ecs.Tag{},
		Overrides: ecs.Overrides{Containers: []ecs.ContainerOverride{}, Accelerators: []struct{}{}},
	}
	if tags {
		for _, tag := range t.Definition.Tags {
			out.Tags = append(out.Tags, ecs.Tag{Key: tag.Key, Value: tag.Value})
		}
	}
	for _, c := range v.Containers {
		f := t.Facts.Containers[c.Name]
		shown := ecs.Container{
			ContainerARN: f.ContainerARN, TaskARN: t.Facts.TaskARN, Name: c.Name, Image: c.Image, RuntimeID: f.DockerID,
			LastStatus: c.KnownStatus, ExitCode: c.ExitCode, Reason: c.Reason, HealthStatus: "UNKNOWN", CPU: "0",
			NetworkInterfaces: []ecs.NetworkInterface{{IPv4: t.Facts.Network.IP}},
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

// lastStatus is the API's word for a task that metadata has as NONE.
func lastStatus(v scheduler.View) string {
	if v.KnownStatus == scheduler.StatusNone {
		return "PENDING"
	}
	return v.KnownStatus
}
