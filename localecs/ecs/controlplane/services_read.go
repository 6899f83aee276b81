package controlplane

import (
	"cmp"
	"maps"
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
func (a *serviceAPI) DescribeServices(call shapes.Call, in shapes.DescribeServicesInput) (shapes.DescribeServicesOutput,
	error) {
	out := shapes.DescribeServicesOutput{Services: []shapes.Service{}, Failures: []shapes.Failure{}}
	if len(in.Services) == 0 {
		return out, shapes.Invalid("Services cannot be empty.")
	}
	if err := cmp.Or(atMost("services", len(in.Services), maxDescribed),
		enum("include", in.Include, "TAGS")); err != nil {
		return out, err
	}
	err := a.state.each(in.Cluster, in.Services, a.state.account.ServiceName, func(c *cluster, name string) {
		arn := a.state.account.Service(c.name, name)
		v := a.state.services[arn]
		if v == nil || call.Now.Sub(v.created) < a.state.options.Lag.New {
			out.Failures = append(out.Failures, shapes.Failure{ARN: arn, Reason: shapes.Missing})
			return
		}
		shape := a.shape(v, call.Now, a.state.options.Lag.Counts)
		if !slices.Contains(in.Include, "TAGS") {
			shape.Tags = nil
		}
		out.Services = append(out.Services, shape)
	})
	return out, err
}

// ListServices lists a cluster's services that are not INACTIVE, ten a page.
func (a *serviceAPI) ListServices(call shapes.Call, in shapes.ListServicesInput) (shapes.ListServicesOutput, error) {
	out := shapes.ListServicesOutput{ServiceARNs: []string{}}
	if err := cmp.Or(checkLaunchType(in.LaunchType), checkSchedulingStrategy(in.SchedulingStrategy),
		enum("resourceManagementType", []string{in.ManagementType}, "CUSTOMER", "ECS")); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	if in.MaxResults == nil {
		in.MaxResults = new(listPage)
	}
	at := call.Now.Add(-a.state.options.Lag.Lists)
	listed := func(arn string) bool {
		v := a.state.services[arn]
		return v.cluster == c.name && v.listed(at) && in.SchedulingStrategy != daemon && in.ManagementType != "ECS" &&
			(in.LaunchType == "" || in.LaunchType == v.Deployments[0].run.LaunchType)
	}
	scope := strings.Join([]string{"services", c.name, in.LaunchType, in.SchedulingStrategy, in.ManagementType}, " ")
	arns, next, err := Page(slices.Sorted(maps.Keys(a.state.services)), listed, in.PageInput, scope, call.Now, false,
		itself)
	out.ServiceARNs, out.NextToken = append(out.ServiceARNs, arns...), next
	return out, err
}

// Services returns the services of all clusters that are not INACTIVE, sorted by cluster and name.
func (a *serviceAPI) Services(now time.Time) []shapes.Service {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	var all []shapes.Service
	for _, arn := range slices.Sorted(maps.Keys(a.state.services)) {
		if v := a.state.services[arn]; v.status != shapes.Inactive {
			all = append(all, a.shape(v, now, 0))
		}
	}
	return all
}

func (v *Service) listed(at time.Time) bool {
	return !v.created.After(at) && (v.ended.IsZero() || v.ended.After(at))
}

func (a *serviceAPI) output(v *Service, now time.Time) shapes.ServiceOutput {
	return shapes.ServiceOutput{Service: a.shape(v, now, 0)}
}

func (a *serviceAPI) shape(v *Service, now time.Time, age time.Duration) shapes.Service {
	shown := a.deployments(v, now, age)
	run := v.Deployments[0].run
	shape := shapes.Service{
		ServiceARN: a.state.account.Service(v.cluster, v.Name), ServiceName: v.Name,
		ClusterARN:    a.state.account.Cluster(v.cluster),
		LoadBalancers: []struct{}{}, Status: v.status, DesiredCount: v.Desired,
		ServiceRegistries: append([]shapes.ServiceRegistry{}, v.Deployments[0].registries...),
		LaunchType:        run.LaunchType, CapacityProviderStrategy: run.CapacityProviderStrategy,
		PlatformVersion: run.PlatformVersion, PlatformFamily: "Linux", TaskDefinition: run.TaskDefinition,
		DeploymentConfiguration: v.configuration(), CurrentRevisions: a.revisions(v, shown),
		RoleARN:     a.state.account.ServiceRole(),
		Deployments: shown, Events: append([]shapes.ServiceEvent{}, v.events...), CreatedAt: shapes.At(v.created),
		CreatedBy:            v.createdBy,
		PlacementConstraints: []struct{}{}, PlacementStrategy: []struct{}{},
		NetworkConfiguration:   run.NetworkConfiguration,
		HealthCheckGracePeriod: v.grace, SchedulingStrategy: "REPLICA",
		DeploymentController: shapes.DeploymentController{Type: "ECS"},
		Tags:                 append([]shapes.Tag{}, v.tags...), EnableECSManagedTags: run.EnableECSManagedTags,
		PropagateTags:        cmp.Or(v.propagate, "NONE"),
		EnableExecuteCommand: run.EnableExecuteCommand, ZoneRebalancing: v.rebalance,
	}
	for _, d := range shown {
		shape.RunningCount += d.RunningCount
		shape.PendingCount += d.PendingCount
	}
	if v.status == shapes.Inactive {
		shape.Deployments, shape.CurrentRevisions = []shapes.Deployment{}, nil
	}
	if len(v.history) > 0 {
		shape.CurrentDeployment = a.state.account.ServiceDeployment(v.cluster, v.Name, v.history[0].outcome.id)
	}
	return shape
}

func (v *Service) configuration() shapes.DeploymentConfiguration {
	breaker, upper, lower := v.Breaker, v.Max, v.MinHealthy
	return shapes.DeploymentConfiguration{
		CircuitBreaker: &breaker, MaximumPercent: &upper, MinimumHealthyPercent: &lower, Strategy: "ROLLING",
		Alarms: v.alarms, EarlySuccess: v.early,
	}
}

func (a *serviceAPI) deployments(v *Service, now time.Time, age time.Duration) []shapes.Deployment {
	records := a.state.serviceRecords(v, now)
	var shown []shapes.Deployment
	for i, d := range v.Deployments {
		shape := shapes.Deployment{
			ID: d.ID, Status: "ACTIVE", TaskDefinition: d.run.TaskDefinition, FailedTasks: d.FailedTasks,
			CreatedAt: shapes.At(d.Created), UpdatedAt: shapes.At(d.Updated), LaunchType: d.run.LaunchType,
			CapacityProviderStrategy: d.run.CapacityProviderStrategy,
			PlatformVersion:          shapes.PlatformVersion, PlatformFamily: "Linux",
			NetworkConfiguration: d.run.NetworkConfiguration,
			RolloutState:         d.Rollout, RolloutStateReason: d.Reason, ServiceConnect: d.connect,
		}
		for _, r := range records {
			switch running, pending := counted(r.Task, now.Add(-age)); {
			case r.Task.StartedBy != d.ID:
			case running:
				shape.RunningCount++
			case pending:
				shape.PendingCount++
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

func counted(t shapes.Task, at time.Time) (running, pending bool) {
	is := func(since shapes.Time) bool { return !since.IsZero() && !since.After(at) }
	if is(t.StoppingAt) || is(t.StoppedAt) || !is(t.CreatedAt) {
		return false, false
	}
	return is(t.StartedAt), !is(t.StartedAt)
}
