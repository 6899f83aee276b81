package services

import (
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/input"
)

// Limits of calls that show services.
const (
	maxDescribed = 10
	listPage     = 10
)

// DescribeServices finds services by name or ARN, deleted ones for an hour.
func (s *Services) DescribeServices(call ecs.Call, in ecs.DescribeServicesInput) (ecs.DescribeServicesOutput, error) {
	out := ecs.DescribeServicesOutput{Services: []ecs.Service{}, Failures: []ecs.Failure{}}
	if len(in.Services) == 0 {
		return out, ecs.Invalid("Services cannot be empty.")
	}
	if err := input.FirstOf(input.AtMost("services", len(in.Services), maxDescribed), input.Enum("include", in.Include, "TAGS")); err != nil {
		return out, err
	}
	cluster, err := s.plane.ClusterName(in.Cluster)
	if err != nil {
		return out, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range in.Services {
		name, err := s.account.ServiceName(cluster, ref)
		if err != nil {
			return out, err
		}
		v := s.byKey[key{cluster, name}]
		if v == nil || call.Now.Sub(v.created) < s.lag.New {
			out.Failures = append(out.Failures, ecs.Failure{ARN: s.account.Service(cluster, name), Reason: ecs.Missing})
			continue
		}
		shape := s.shape(v, call.Now, s.lag.Counts)
		if !slices.Contains(in.Include, "TAGS") {
			shape.Tags = nil
		}
		out.Services = append(out.Services, shape)
	}
	return out, nil
}

// ListServices lists a cluster's services that are not INACTIVE, ten a page.
func (s *Services) ListServices(call ecs.Call, in ecs.ListServicesInput) (ecs.ListServicesOutput, error) {
	out := ecs.ListServicesOutput{ServiceARNs: []string{}}
	err := input.FirstOf(
		input.Enum("launchType", []string{in.LaunchType}, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"),
		input.Enum("schedulingStrategy", []string{in.SchedulingStrategy}, "REPLICA", "DAEMON"))
	if err != nil {
		return out, err
	}
	cluster, err := s.plane.ClusterName(in.Cluster)
	if err != nil {
		return out, err
	}
	if in.MaxResults == nil {
		in.MaxResults = new(int)
		*in.MaxResults = listPage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := call.Now.Add(-s.lag.Lists)
	var names []string
	for k, v := range s.byKey {
		launchType := v.settings[v.Deployments[0].ID].LaunchType
		if k.cluster == cluster && v.listed(at) && in.SchedulingStrategy != "DAEMON" && (in.LaunchType == "" || in.LaunchType == launchType) {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	scope := strings.Join([]string{"services", cluster, in.LaunchType, in.SchedulingStrategy}, " ")
	names, out.NextToken, err = input.Page(names, in.PageInput, scope, call.Now, input.Ascending, func(name string) string { return name })
	for _, name := range names {
		out.ServiceARNs = append(out.ServiceARNs, s.account.Service(cluster, name))
	}
	return out, err
}

// listed says whether a list from at has the service: one that is there, and not
// INACTIVE.
func (v *service) listed(at time.Time) bool {
	return !v.created.After(at) && (v.ended.IsZero() || v.ended.After(at))
}

func (s *Services) output(v *service, now time.Time) ecs.ServiceOutput {
	if v == nil {
		return ecs.ServiceOutput{}
	}
	return ecs.ServiceOutput{Service: s.shape(v, now, 0)}
}

// shape is the service as the API shows it, with numbers of tasks that are so old.
func (s *Services) shape(v *service, now time.Time, age time.Duration) ecs.Service {
	shown := s.deployments(v, now, age)
	run := v.settings[v.Deployments[0].ID]
	breaker, upper, lower := ecs.CircuitBreaker(v.Breaker), v.Max, v.MinHealthy
	shape := ecs.Service{
		ServiceARN: s.account.Service(v.cluster, v.name), ServiceName: v.name, ClusterARN: s.account.Cluster(v.cluster),
		LoadBalancers: []struct{}{}, ServiceRegistries: []struct{}{}, Status: v.status, DesiredCount: v.Desired,
		LaunchType: run.LaunchType, CapacityProviderStrategy: run.CapacityProviderStrategy,
		PlatformVersion: run.PlatformVersion, PlatformFamily: "Linux", TaskDefinition: shown[0].TaskDefinition,
		DeploymentConfiguration: ecs.DeploymentConfiguration{CircuitBreaker: &breaker, MaximumPercent: &upper, MinimumHealthyPercent: &lower, Strategy: "ROLLING"},
		Deployments:             shown, Events: append([]ecs.ServiceEvent{}, v.events...), CreatedAt: ecs.At(v.created), CreatedBy: v.createdBy,
		PlacementConstraints: []struct{}{}, PlacementStrategy: []struct{}{}, NetworkConfiguration: run.NetworkConfiguration,
		HealthCheckGracePeriod: v.grace, SchedulingStrategy: "REPLICA", DeploymentController: ecs.DeploymentController{Type: "ECS"},
		Tags: append([]ecs.Tag{}, v.tags...), EnableECSManagedTags: run.EnableECSManagedTags, PropagateTags: v.propagate, EnableExecuteCommand: run.EnableExecuteCommand,
		ZoneRebalancing: v.rebalance,
	}
	if shape.PropagateTags == "" {
		shape.PropagateTags = "NONE"
	}
	for _, d := range shown {
		shape.RunningCount += d.RunningCount
		shape.PendingCount += d.PendingCount
	}
	if v.status == ecs.Inactive {
		shape.Deployments = []ecs.Deployment{}
	}
	return shape
}

// deployments are as the API shows them, the primary one first.
func (s *Services) deployments(v *service, now time.Time, age time.Duration) []ecs.Deployment {
	tasks := s.plane.ServiceTasks(ecs.Call{Now: now}, v.cluster, v.name)
	var shown []ecs.Deployment
	for i, d := range v.Deployments {
		run := v.settings[d.ID]
		shape := ecs.Deployment{
			ID: d.ID, Status: "ACTIVE", TaskDefinition: v.revisions[d.ID].arn, FailedTasks: d.FailedTasks,
			CreatedAt: ecs.At(d.Created), UpdatedAt: ecs.At(d.Updated), LaunchType: run.LaunchType, CapacityProviderStrategy: run.CapacityProviderStrategy,
			PlatformVersion: ecs.PlatformVersion, PlatformFamily: "Linux", NetworkConfiguration: run.NetworkConfiguration,
			RolloutState: d.Rollout, RolloutStateReason: d.Reason,
		}
		for _, t := range tasks {
			if t.StartedBy == d.ID {
				running, pending := counted(t, now.Add(-age))
				shape.RunningCount += count(running)
				shape.PendingCount += count(pending)
			}
		}
		shape.DesiredCount = shape.RunningCount + shape.PendingCount
		if i == 0 {
			shape.Status, shape.DesiredCount = "PRIMARY", v.Desired
		}
		shown = append(shown, shape)
	}
	return shown
}

// counted says in which of its service's numbers a task was at a time.
func counted(t ecs.Task, at time.Time) (running, pending bool) {
	is := func(since ecs.Time) bool { return !since.IsZero() && !since.After(at) }
	if is(t.StoppingAt) || is(t.StoppedAt) || !is(t.CreatedAt) {
		return false, false
	}
	return is(t.StartedAt), !is(t.StartedAt)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ListTasks is the control plane's, and knows which services there are.
func (s *Services) ListTasks(call ecs.Call, in ecs.ListTasksInput) (ecs.ListTasksOutput, error) {
	if in.ServiceName != "" {
		s.mu.Lock()
		_, err := s.find(in.Cluster, in.ServiceName)
		s.mu.Unlock()
		if err != nil {
			return ecs.ListTasksOutput{TaskARNs: []string{}}, err
		}
	}
	return s.plane.ListTasks(call, in)
}

// TagResource is the control plane's, and also knows services.
func (s *Services) TagResource(call ecs.Call, in ecs.TagResourceInput) (ecs.Empty, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.TagResource(call, in)
	}
	if err := input.Tags(in.Tags); err != nil {
		return ecs.Empty{}, err
	}
	return ecs.Empty{}, s.changeTags(in.ResourceARN, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		merged := input.MergeTags(tags, in.Tags...)
		return merged, input.AtMost("tags", len(merged), input.MaxTags)
	})
}

// UntagResource is the control plane's, and also knows services.
func (s *Services) UntagResource(call ecs.Call, in ecs.UntagResourceInput) (ecs.Empty, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.UntagResource(call, in)
	}
	return ecs.Empty{}, s.changeTags(in.ResourceARN, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		return slices.DeleteFunc(slices.Clone(tags), func(t ecs.Tag) bool { return slices.Contains(in.TagKeys, t.Key) }), nil
	})
}

// ListTagsForResource is the control plane's, and also knows services.
func (s *Services) ListTagsForResource(call ecs.Call, in ecs.ResourceInput) (ecs.TagsOutput, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.ListTagsForResource(call, in)
	}
	out := ecs.TagsOutput{Tags: []ecs.Tag{}}
	return out, s.changeTags(in.ResourceARN, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		out.Tags = append(out.Tags, tags...)
		return tags, nil
	})
}

// mine says whether a resource is a service.
func (s *Services) mine(resource string) bool {
	r, err := s.account.Parse(resource)
	return err == nil && r.Kind == "service"
}

func (s *Services) changeTags(resource string, change func([]ecs.Tag) ([]ecs.Tag, error)) error {
	r, err := s.account.Parse(resource)
	if err != nil {
		return err
	}
	if r.Cluster == "" { // the old short form
		r.Cluster = arn.Default
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byKey[key{r.Cluster, r.Name}]
	if v == nil || v.status == ecs.Inactive {
		return ecs.Invalid("The specified service is not found. Specify a valid service and try again.")
	}
	changed, err := change(v.tags)
	if err == nil {
		v.tags = changed
	}
	return err
}

// DescribeClusters is the control plane's, with the number of services.
func (s *Services) DescribeClusters(call ecs.Call, in ecs.DescribeClustersInput) (ecs.DescribeClustersOutput, error) {
	out, err := s.plane.DescribeClusters(call, in)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out.Clusters {
		out.Clusters[i].ActiveServices = s.active(out.Clusters[i].ClusterName)
	}
	return out, err
}

// DeleteCluster is the control plane's, when there are no services left.
func (s *Services) DeleteCluster(call ecs.Call, in ecs.ClusterInput) (ecs.ClusterOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, err := s.plane.ClusterName(in.Cluster)
	if err == nil && s.active(name) > 0 {
		return ecs.ClusterOutput{}, ecs.Errorf(ecs.ClusterContainsServices, "The Cluster cannot be deleted while Services are active.")
	}
	return s.plane.DeleteCluster(call, in)
}

// active is how many services of a cluster are ACTIVE.
func (s *Services) active(cluster string) int {
	n := 0
	for k, v := range s.byKey {
		n += count(k.cluster == cluster && v.status == ecs.Active)
	}
	return n
}
