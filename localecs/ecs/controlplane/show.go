package controlplane

import (
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Limits of calls that show services.
const (
	maxDescribed = 10
	listPage     = 10
)

// DescribeServices finds services by name or ARN, deleted ones for an hour.
func (s *Services) DescribeServices(call shapes.Call, in shapes.DescribeServicesInput) (shapes.DescribeServicesOutput, error) {
	out := shapes.DescribeServicesOutput{Services: []shapes.Service{}, Failures: []shapes.Failure{}}
	if len(in.Services) == 0 {
		return out, shapes.Invalid("Services cannot be empty.")
	}
	if err := FirstOf(AtMost("services", len(in.Services), maxDescribed), Enum("include", in.Include, "TAGS")); err != nil {
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
			out.Failures = append(out.Failures, shapes.Failure{ARN: s.account.Service(cluster, name), Reason: shapes.Missing})
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
func (s *Services) ListServices(call shapes.Call, in shapes.ListServicesInput) (shapes.ListServicesOutput, error) {
	out := shapes.ListServicesOutput{ServiceARNs: []string{}}
	err := FirstOf(
		Enum("launchType", []string{in.LaunchType}, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"),
		Enum("schedulingStrategy", []string{in.SchedulingStrategy}, "REPLICA", "DAEMON"))
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
	names, out.NextToken, err = Page(names, in.PageInput, scope, call.Now, Ascending, func(name string) string { return name })
	for _, name := range names {
		out.ServiceARNs = append(out.ServiceARNs, s.account.Service(cluster, name))
	}
	return out, err
}

// listed reports whether a list from at has the service: one that is there, and not
// INACTIVE.
func (v *service) listed(at time.Time) bool {
	return !v.created.After(at) && (v.ended.IsZero() || v.ended.After(at))
}

func (s *Services) output(v *service, now time.Time) shapes.ServiceOutput {
	if v == nil {
		return shapes.ServiceOutput{}
	}
	return shapes.ServiceOutput{Service: s.shape(v, now, 0)}
}

// shape is the service as the API shows it, with numbers of tasks that are so old.
func (s *Services) shape(v *service, now time.Time, age time.Duration) shapes.Service {
	shown := s.deployments(v, now, age)
	run := v.settings[v.Deployments[0].ID]
	breaker, upper, lower := shapes.CircuitBreaker(v.Breaker), v.Max, v.MinHealthy
	shape := shapes.Service{
		ServiceARN: s.account.Service(v.cluster, v.name), ServiceName: v.name, ClusterARN: s.account.Cluster(v.cluster),
		LoadBalancers: []struct{}{}, ServiceRegistries: []struct{}{}, Status: v.status, DesiredCount: v.Desired,
		LaunchType: run.LaunchType, CapacityProviderStrategy: run.CapacityProviderStrategy,
		PlatformVersion: run.PlatformVersion, PlatformFamily: "Linux", TaskDefinition: shown[0].TaskDefinition,
		DeploymentConfiguration: shapes.DeploymentConfiguration{CircuitBreaker: &breaker, MaximumPercent: &upper, MinimumHealthyPercent: &lower, Strategy: "ROLLING"},
		Deployments:             shown, Events: append([]shapes.ServiceEvent{}, v.events...), CreatedAt: shapes.At(v.created), CreatedBy: v.createdBy,
		PlacementConstraints: []struct{}{}, PlacementStrategy: []struct{}{}, NetworkConfiguration: run.NetworkConfiguration,
		HealthCheckGracePeriod: v.grace, SchedulingStrategy: "REPLICA", DeploymentController: shapes.DeploymentController{Type: "ECS"},
		Tags: append([]shapes.Tag{}, v.tags...), EnableECSManagedTags: run.EnableECSManagedTags, PropagateTags: v.propagate, EnableExecuteCommand: run.EnableExecuteCommand,
		ZoneRebalancing: v.rebalance,
	}
	if shape.PropagateTags == "" {
		shape.PropagateTags = "NONE"
	}
	for _, d := range shown {
		shape.RunningCount += d.RunningCount
		shape.PendingCount += d.PendingCount
	}
	if v.status == shapes.Inactive {
		shape.Deployments = []shapes.Deployment{}
	}
	return shape
}

// deployments are as the API shows them, the primary one first.
func (s *Services) deployments(v *service, now time.Time, age time.Duration) []shapes.Deployment {
	tasks := s.plane.ServiceTasks(shapes.Call{Now: now}, v.cluster, v.name)
	var shown []shapes.Deployment
	for i, d := range v.Deployments {
		run := v.settings[d.ID]
		shape := shapes.Deployment{
			ID: d.ID, Status: "ACTIVE", TaskDefinition: v.revisions[d.ID].arn, FailedTasks: d.FailedTasks,
			CreatedAt: shapes.At(d.Created), UpdatedAt: shapes.At(d.Updated), LaunchType: run.LaunchType, CapacityProviderStrategy: run.CapacityProviderStrategy,
			PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux", NetworkConfiguration: run.NetworkConfiguration,
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
func counted(t shapes.Task, at time.Time) (running, pending bool) {
	is := func(since shapes.Time) bool { return !since.IsZero() && !since.After(at) }
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
func (s *Services) ListTasks(call shapes.Call, in shapes.ListTasksInput) (shapes.ListTasksOutput, error) {
	if in.ServiceName != "" {
		s.mu.Lock()
		_, err := s.find(in.Cluster, in.ServiceName)
		s.mu.Unlock()
		if err != nil {
			return shapes.ListTasksOutput{TaskARNs: []string{}}, err
		}
	}
	return s.plane.ListTasks(call, in)
}

// TagResource is the control plane's, and also knows services.
func (s *Services) TagResource(call shapes.Call, in shapes.TagResourceInput) (shapes.Empty, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.TagResource(call, in)
	}
	if err := Tags(in.Tags); err != nil {
		return shapes.Empty{}, err
	}
	return shapes.Empty{}, s.changeTags(in.ResourceARN, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		merged := MergeTags(tags, in.Tags...)
		return merged, AtMost("tags", len(merged), MaxTags)
	})
}

// UntagResource is the control plane's, and also knows services.
func (s *Services) UntagResource(call shapes.Call, in shapes.UntagResourceInput) (shapes.Empty, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.UntagResource(call, in)
	}
	return shapes.Empty{}, s.changeTags(in.ResourceARN, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		return slices.DeleteFunc(slices.Clone(tags), func(t shapes.Tag) bool { return slices.Contains(in.TagKeys, t.Key) }), nil
	})
}

// ListTagsForResource is the control plane's, and also knows services.
func (s *Services) ListTagsForResource(call shapes.Call, in shapes.ResourceInput) (shapes.TagsOutput, error) {
	if !s.mine(in.ResourceARN) {
		return s.plane.ListTagsForResource(call, in)
	}
	out := shapes.TagsOutput{Tags: []shapes.Tag{}}
	return out, s.changeTags(in.ResourceARN, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		out.Tags = append(out.Tags, tags...)
		return tags, nil
	})
}

// mine reports whether a resource is a service.
func (s *Services) mine(resource string) bool {
	r, err := s.account.Parse(resource)
	return err == nil && r.Kind == "service"
}

func (s *Services) changeTags(resource string, change func([]shapes.Tag) ([]shapes.Tag, error)) error {
	r, err := s.account.Parse(resource)
	if err != nil {
		return err
	}
	if r.Cluster == "" { // the old short form
		r.Cluster = shapes.Default
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byKey[key{r.Cluster, r.Name}]
	if v == nil || v.status == shapes.Inactive {
		return shapes.Invalid("The specified service is not found. Specify a valid service and try again.")
	}
	changed, err := change(v.tags)
	if err == nil {
		v.tags = changed
	}
	return err
}

// DescribeClusters is the control plane's, with the number of services.
func (s *Services) DescribeClusters(call shapes.Call, in shapes.DescribeClustersInput) (shapes.DescribeClustersOutput, error) {
	out, err := s.plane.DescribeClusters(call, in)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out.Clusters {
		out.Clusters[i].ActiveServices = s.active(out.Clusters[i].ClusterName)
	}
	return out, err
}

// DeleteCluster is the control plane's, when there are no services left.
func (s *Services) DeleteCluster(call shapes.Call, in shapes.ClusterInput) (shapes.ClusterOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, err := s.plane.ClusterName(in.Cluster)
	if err == nil && s.active(name) > 0 {
		return shapes.ClusterOutput{}, shapes.Errorf(shapes.ClusterContainsServices, "The Cluster cannot be deleted while Services are active.")
	}
	return s.plane.DeleteCluster(call, in)
}

// active is how many services of a cluster are ACTIVE.
func (s *Services) active(cluster string) int {
	n := 0
	for k, v := range s.byKey {
		n += count(k.cluster == cluster && v.status == shapes.Active)
	}
	return n
}
