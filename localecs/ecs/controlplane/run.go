package controlplane

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Limits of RunTask.
const (
	maxCount          = 10
	maxStartedBy      = 128
	maxClientToken    = 64
	maxSubnets        = 16
	maxSecurityGroups = 5
)

// taskLifecycle starts and stops tasks, and records what the launcher reports of them.
type taskLifecycle struct {
	state    *state
	launches *rate.Limiter // Fargate's bucket of tasks to start, apart from those of calls
}

type order struct {
	origin   origin
	cluster  *cluster
	revision *Revision
	def      *taskdef.TaskDefinition // with overrides
	count    int
	// providers are the tasks' capacity providers; none for a launch type.
	providers []string
	tags      []shapes.Tag
	input     shapes.RunTaskInput
}

// origin is where a request for tasks comes from: a call of RunTask or CreateService
// when it is zero.
type origin struct {
	// service is empty for standalone tasks; connect means that they get the proxy of Service Connect.
	service string
	connect bool
	names   []string // of Cloud Map
	// anywhere accepts definitions that are not for Fargate.
	anywhere bool
	// inactive accepts inactive definitions: a service continues with its own.
	inactive bool
}

// RunTask starts tasks. They are PROVISIONING in the answer.
func (a *taskAPI) RunTask(call shapes.Call, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	if strings.HasPrefix(in.Group, "service:") {
		return shapes.TasksOutput{}, shapes.Invalid("Invalid namespace for group.")
	}
	if in.PropagateTags == "SERVICE" {
		return shapes.TasksOutput{}, shapes.Invalid("propagateTags cannot be SERVICE when running a task.")
	}
	if len(in.VolumeConfigurations) > 0 {
		return shapes.TasksOutput{}, notSupported("volumeConfigurations")
	}
	a.state.mu.Lock()
	defer a.state.unlock()
	return a.lifecycle.run(call, in, origin{})
}

// RunUnthrottled starts tasks for the process that has this Plane: of a service, or
// standalone when it is empty, and also of definitions that are not for Fargate.
// They are not throttled.
func (a *taskAPI) RunUnthrottled(call shapes.Call, service string, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	a.state.mu.Lock()
	defer a.state.unlock()
	return a.lifecycle.run(call, in, origin{service: service, anywhere: true, inactive: true})
}

func (l *taskLifecycle) run(call shapes.Call, in shapes.RunTaskInput, by origin) (shapes.TasksOutput, error) {
	out := shapes.TasksOutput{Tasks: []shapes.Task{}, Failures: []shapes.Failure{}}
	o, err := l.order(in, by)
	if err != nil {
		return out, err
	}
	key := "run " + o.cluster.name + "/" + in.ClientToken
	first, known := l.state.tokens[key]
	switch {
	case in.ClientToken == "" || !known || call.Now.Sub(first.at) >= keepToken:
	case first.input != fingerprint(in):
		err := shapes.Errorf(shapes.ConflictException,
			"The provided clientToken is already in use with a different RunTask request.")
		for _, id := range first.tasks {
			err.ResourceIDs = append(err.ResourceIDs, l.state.account.Task(o.cluster.name, id))
		}
		return out, err
	default:
		for _, id := range first.tasks {
			if r := l.state.tasks[id]; r != nil {
				out.Tasks = append(out.Tasks, r.Shape(call.Now, l.state.options.Lag, true))
			}
		}
		return out, nil
	}
	if !by.anywhere && !l.launches.AllowN(call.Now, o.count) {
		return out, throttled()
	}
	var ids []string
	for i := range o.count {
		r := l.create(call.Now, o, i)
		ids = append(ids, r.ID)
		out.Tasks = append(out.Tasks, r.Shape(call.Now, Lag{}, true))
	}
	if in.ClientToken != "" {
		l.state.tokens[key] = token{input: fingerprint(in), tasks: ids, at: call.Now}
	}
	return out, nil
}

func (l *taskLifecycle) order(in shapes.RunTaskInput, by origin) (*order, error) {
	if err := checkRun(in); err != nil {
		return nil, err
	}
	c, err := l.state.cluster(in.Cluster)
	if err != nil {
		return nil, err
	}
	r, err := l.state.definition(in.TaskDefinition)
	switch {
	case err != nil:
		return nil, err
	case r.Definition.Status != shapes.Active && !by.inactive:
		return nil, shapes.Client("TaskDefinition is inactive")
	}
	o := &order{origin: by, cluster: c, revision: r, count: 1, input: in}
	if in.Count != nil {
		o.count = *in.Count
	}
	strategy, err := strategyOf(c, in)
	if err != nil {
		return nil, err
	}
	o.providers = Spread(strategy, l.placed(c, by.service, in.StartedBy), o.count)
	if err := checkFargate(r, in); err != nil && !by.anywhere {
		return nil, err
	}
	if err := checkNetwork(r.Definition, in.NetworkConfiguration); err != nil {
		return nil, err
	}
	if o.def, err = override(r.Definition, in.Overrides, !by.anywhere); err != nil {
		return nil, err
	}
	if in.PropagateTags == "TASK_DEFINITION" {
		o.tags = slices.Clone(r.Tags)
	}
	o.tags = MergeTags(o.tags, in.Tags...)
	if in.EnableECSManagedTags {
		o.tags = MergeTags(o.tags, shapes.Tag{Key: "aws:ecs:clusterName", Value: c.name})
		if by.service != "" {
			o.tags = MergeTags(o.tags, shapes.Tag{Key: "aws:ecs:serviceName", Value: by.service})
		}
	}
	return o, nil
}

func checkRun(in shapes.RunTaskInput) error {
	if in.TaskDefinition == "" {
		return shapes.Client("TaskDefinition can not be blank.")
	}
	if in.Count != nil && (*in.Count < 1 || *in.Count > maxCount) {
		return shapes.Invalid("count must be between 1 and %d.", maxCount)
	}
	if len(in.CapacityProviderStrategy) > 0 && in.LaunchType != "" {
		return shapes.Invalid("Specifying both a launch type and capacity provider strategy is not supported. Remove " +
			"one and try again.")
	}
	return cmp.Or(
		checkLaunchType(in.LaunchType),
		checkPropagateTags(in.PropagateTags),
		short("startedBy", in.StartedBy, maxStartedBy),
		short("clientToken", in.ClientToken, maxClientToken),
		Tags(in.Tags),
	)
}

// strategyOf returns the capacity provider strategy of the tasks, or nil for the
// launch type FARGATE. Without either the cluster's strategy applies, and without
// that the tasks are for EC2, which has no instances here.
func strategyOf(c *cluster, in shapes.RunTaskInput) ([]shapes.StrategyItem, error) {
	strategy := in.CapacityProviderStrategy
	switch {
	case in.LaunchType == shapes.Fargate:
		return nil, nil
	case in.LaunchType == "" && len(strategy) == 0:
		strategy = c.strategy
	}
	if len(strategy) == 0 {
		return nil, shapes.Invalid("No Container Instances were found in your cluster.")
	}
	return strategy, Check(c.providers, strategy)
}

// placed returns the tasks that a service's deployment has on each capacity provider: each RunTask is
// spread by itself.
func (l *taskLifecycle) placed(c *cluster, service, deployment string) map[string]int {
	running := map[string]int{}
	for _, r := range l.state.records {
		if service != "" && r.Cluster == c.name && r.Service == service && r.Task.StartedBy == deployment &&
			r.Task.DesiredStatus == shapes.Running {
			running[r.Task.CapacityProviderName]++
		}
	}
	return running
}

func checkFargate(r *Revision, in shapes.RunTaskInput) error {
	switch {
	case !slices.Contains(r.Definition.Compatibilities, shapes.Fargate):
		return shapes.Invalid("Task definition does not support launch_type FARGATE.")
	case len(in.PlacementConstraints) > 0:
		return shapes.Invalid("Placement constraints are not supported with FARGATE launch type.")
	case len(in.PlacementStrategy) > 0:
		return shapes.Invalid("Placement strategies are not supported with FARGATE launch type.")
	case !slices.Contains([]string{"", latest, shapes.PlatformVersion}, in.PlatformVersion):
		return shapes.Errorf(shapes.PlatformUnknown, "The specified platform does not exist.")
	}
	return nil
}

func checkNetwork(def *taskdef.TaskDefinition, n *shapes.NetworkConfiguration) error {
	given := n != nil && n.AWSVPC != nil
	switch {
	case def.NetworkMode != "awsvpc" && given:
		return shapes.Invalid("Network Configuration is not valid for the given networkMode of this task definition.")
	case def.NetworkMode != "awsvpc":
		return nil
	case !given:
		return shapes.Invalid("Network Configuration must be provided when networkMode 'awsvpc' is specified.")
	case len(n.AWSVPC.Subnets) == 0:
		return shapes.Invalid("subnets can not be empty.")
	}
	for _, s := range n.AWSVPC.Subnets {
		if !strings.HasPrefix(s, "subnet-") {
			return shapes.Invalid("Error retrieving subnet information for [%s]: The subnet ID '%s' does not exist "+
				"(ErrorCode: InvalidSubnetID.NotFound)", s, s)
		}
	}
	return cmp.Or(
		atMost("subnets", len(n.AWSVPC.Subnets), maxSubnets),
		atMost("securityGroups", len(n.AWSVPC.SecurityGroups), maxSecurityGroups),
		enum("assignPublicIp", []string{n.AWSVPC.AssignPublicIP}, enabled, disabled),
	)
}

func (l *taskLifecycle) create(now time.Time, o *order, i int) *Record {
	l.state.created++
	in := o.input
	id, cluster := shapes.NewID(), o.cluster.name
	def := l.state.options.Added.addTo(o.def, o.origin.connect)
	r := &Record{Number: l.state.created, InterfaceID: uuid.New().String()}
	r.Launch = Launch{
		ID: id, Cluster: cluster, Reference: in.ReferenceID, Service: o.origin.service, Definition: def,
		Names:         o.origin.names,
		ContainerARNs: map[string]string{},
		Report:        func(report Report, now time.Time) { l.report(r, report, now) },
	}
	if n := in.NetworkConfiguration; n != nil && n.AWSVPC != nil {
		r.Subnet = n.AWSVPC.Subnets[0]
	}
	for _, c := range def.ContainerDefinitions {
		r.ContainerARNs[c.Name] = l.state.account.Container(cluster, id, uuid.New().String())
	}
	storage := 20
	if e := o.def.EphemeralStorage; e != nil {
		storage = e.SizeInGiB
	}
	r.Task = shapes.Task{
		Attributes:       []shapes.NameValue{{Name: "ecs.cpu-architecture", Value: architecture(o.def)}},
		AvailabilityZone: l.state.account.Region + "a", ClusterARN: l.state.account.Cluster(cluster),
		TaskARN: l.state.account.Task(cluster, id), TaskDefinitionARN: o.revision.Definition.TaskDefinitionARN,
		Tags: o.tags,
		CPU:  o.def.CPU, Memory: o.def.Memory, CreatedAt: shapes.At(now), EnableExecuteCommand: in.EnableExecuteCommand,
		DesiredStatus: shapes.Running, LastStatus: shapes.Provisioning, Version: 1,
		Group: in.Group, StartedBy: in.StartedBy, LaunchType: shapes.Fargate,
		Overrides:       shownOverrides(o.def, in.Overrides),
		PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux",
		EphemeralStorage: &shapes.EphemeralStorage{SizeInGiB: storage}, FargateStorage: &shapes.EphemeralStorage{
			SizeInGiB: storage,
		},
	}
	if in.Group == "" {
		r.Task.Group = "family:" + o.def.Family
	}
	if o.providers != nil {
		r.Task.CapacityProviderName = o.providers[i]
	}
	l.state.tasks[id] = r
	l.state.records = append(l.state.records, r)
	l.state.version(r, now)
	l.state.handover = append(l.state.handover, func() { l.state.options.Launcher.Launch(r.Launch) })
	return r
}

func (l *taskLifecycle) report(r *Record, report Report, now time.Time) {
	l.state.mu.Lock()
	defer l.state.unlock()
	if r.Task.DesiredStatus == shapes.Stopped && report.View.DesiredStatus != scheduler.StatusStopped {
		l.handOverStop(r) // it was requested before the launcher had the task
	}
	if report.Gone {
		l.state.options.Protections.Set(r.Task.TaskARN, time.Time{})
	}
	if r.Apply(report, now) {
		l.state.version(r, now)
	}
}

func architecture(def *taskdef.TaskDefinition) string {
	if p := def.RuntimePlatform; p != nil && p.CPUArchitecture == "ARM64" {
		return "arm64"
	}
	return "x86_64"
}
