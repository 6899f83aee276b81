package controlplane

import (
	"cmp"
	"crypto/rand"
	"math/big"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// serviceAPI has the calls about services.
type serviceAPI struct {
	state     *state
	lifecycle *taskLifecycle
}

// CreateService makes a service, or returns the one of that name if all of its
// input is the same.
func (a *serviceAPI) CreateService(call shapes.Call, in shapes.ServiceInput) (shapes.ServiceOutput, error) {
	if err := checkCreate(in); err != nil {
		return shapes.ServiceOutput{}, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	run := tasksInput(in, shapes.RunTaskInput{PlatformVersion: latest})
	o, err := a.lifecycle.order(run, origin{})
	if err != nil {
		return shapes.ServiceOutput{}, err
	}
	run.Cluster, run.TaskDefinition = o.cluster.name, o.revision.Definition.TaskDefinitionARN
	if run.LaunchType == "" && len(run.CapacityProviderStrategy) == 0 {
		run.CapacityProviderStrategy = slices.Clone(o.cluster.strategy)
	}
	first := in
	first.ClientToken = ""
	v := &Service{
		Name: in.ServiceName, MinHealthy: 100, Max: 200, HealthyAfter: a.state.options.HealthyAfter,
		cluster: run.Cluster, status: shapes.Active, first: fingerprint(first),
		propagate: in.PropagateTags, rebalance: enabled, tags: in.Tags, created: call.Now, createdBy: call.Principal,
	}
	key := "service " + v.cluster + "/" + in.ClientToken
	switch old, err := a.existing(v, a.state.tokens[key]); {
	case err != nil:
		return shapes.ServiceOutput{}, err
	case old != nil:
		return a.output(old, call.Now), nil
	}
	if err := v.checkPercentages(in.DeploymentConfiguration); err != nil {
		return shapes.ServiceOutput{}, err
	}
	if err := checkReached(o.def, in); err != nil {
		return shapes.ServiceOutput{}, err
	}
	v.apply(in)
	v.deploy(run, in, call.Now)
	a.state.services[a.state.account.Service(v.cluster, v.Name)] = v
	if in.ClientToken != "" {
		a.state.tokens[key] = token{service: v, at: call.Now}
	}
	a.state.notify()
	return a.output(v, call.Now), nil
}

// existing returns the service that an earlier call with v's input has made, or nil.
// The token is the call's, zero if it is unknown.
func (a *serviceAPI) existing(v *Service, t token) (*Service, error) {
	old := a.state.services[a.state.account.Service(v.cluster, v.Name)]
	switch {
	case t.service != nil && t.service.status == shapes.Active:
		old = t.service
	case old == nil || old.status == shapes.Inactive:
		return nil, nil
	case old.status == shapes.Draining:
		return nil, shapes.Invalid("Unable to Start a service that is still Draining.")
	}
	if old.first != v.first {
		return nil, shapes.Invalid("Creation of service was not idempotent.")
	}
	return old, nil
}

func tasksInput(in shapes.ServiceInput, run shapes.RunTaskInput) shapes.RunTaskInput {
	if in.NetworkConfiguration != nil {
		run.NetworkConfiguration = withDefaults(in.NetworkConfiguration)
	}
	if in.CapacityProviderStrategy != nil {
		run.CapacityProviderStrategy, run.LaunchType = in.CapacityProviderStrategy, ""
	}
	run.LaunchType = cmp.Or(in.LaunchType, run.LaunchType)
	run.TaskDefinition = cmp.Or(in.TaskDefinition, run.TaskDefinition)
	run.PlatformVersion = cmp.Or(in.PlatformVersion, run.PlatformVersion)
	run.Cluster = cmp.Or(in.Cluster, run.Cluster)
	run.EnableECSManagedTags = taskdef.Or(in.EnableECSManagedTags, run.EnableECSManagedTags)
	run.EnableExecuteCommand = taskdef.Or(in.EnableExecuteCommand, run.EnableExecuteCommand)
	run.PlacementConstraints, run.PlacementStrategy = in.PlacementConstraints, in.PlacementStrategy
	return run
}

// latest is the platform version of services that name none.
const latest = "LATEST"

// withDefaults returns a network configuration with what AWS adds, so that setting it explicitly is no
// change.
func withDefaults(n *shapes.NetworkConfiguration) *shapes.NetworkConfiguration {
	if n.AWSVPC == nil {
		return n
	}
	vpc := *n.AWSVPC
	if vpc.SecurityGroups == nil {
		vpc.SecurityGroups = []string{}
	}
	vpc.AssignPublicIP = cmp.Or(vpc.AssignPublicIP, disabled)
	return &shapes.NetworkConfiguration{AWSVPC: &vpc}
}

// Values of several settings. Zone rebalancing is enabled by default.
const (
	enabled  = "ENABLED"
	disabled = "DISABLED"
)

// apply applies what needs no new deployment.
func (v *Service) apply(in shapes.ServiceInput) {
	if in.DesiredCount != nil {
		v.Desired = *in.DesiredCount
	}
	if g := in.HealthCheckGracePeriod; g != nil {
		v.grace, v.Grace = g, time.Duration(*g)*time.Second
	}
	v.propagate = cmp.Or(in.PropagateTags, v.propagate)
	v.rebalance = cmp.Or(in.ZoneRebalancing, v.rebalance)
	if c := in.DeploymentConfiguration; c != nil {
		v.Max, v.MinHealthy = taskdef.Or(c.MaximumPercent, v.Max), taskdef.Or(c.MinimumHealthyPercent, v.MinHealthy)
		v.Breaker = taskdef.Or(c.CircuitBreaker, v.Breaker)
		v.alarms, v.early = cmp.Or(c.Alarms, v.alarms), cmp.Or(c.EarlySuccess, v.early)
	}
}

func (v *Service) deploy(run shapes.RunTaskInput, in shapes.ServiceInput, now time.Time) {
	d := NewDeployment(newDeploymentID(), now)
	d.run, d.connect, d.registries = run, in.ServiceConnect, in.ServiceRegistries
	v.Began(d)
}

// deploymentPrefix stands before the ID of a deployment's revision.
const deploymentPrefix = "ecs-svc/"

func newDeploymentID() string {
	const least = 1_000_000_000_000_000_000
	n, _ := rand.Int(rand.Reader, big.NewInt(8*least)) // never fails
	return deploymentPrefix + n.Add(n, big.NewInt(least)).String()
}

// UpdateService changes a service. Changes of its tasks start a deployment; the
// desired count and the deployment configuration do not.
func (a *serviceAPI) UpdateService(call shapes.Call, in shapes.ServiceInput) (shapes.ServiceOutput, error) {
	if err := checkSettings(in); err != nil {
		return shapes.ServiceOutput{}, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	v, err := a.state.service(in.Cluster, in.Service)
	switch {
	case err != nil:
		return shapes.ServiceOutput{}, err
	case v.status != shapes.Active:
		return shapes.ServiceOutput{}, shapes.Errorf(shapes.ServiceNotActive, "Service was not ACTIVE.")
	}
	in.Cluster = v.cluster
	d := v.Deployments[0]
	run := tasksInput(in, d.run)
	if in.CapacityProviderStrategy != nil && len(in.CapacityProviderStrategy) == 0 { // back to the launch type
		run.CapacityProviderStrategy, run.LaunchType = nil, shapes.Fargate
	}
	o, err := a.lifecycle.order(run,
		origin{inactive: in.TaskDefinition == "" || in.TaskDefinition == d.run.TaskDefinition})
	if err != nil {
		return shapes.ServiceOutput{}, err
	}
	run.TaskDefinition = o.revision.Definition.TaskDefinitionARN
	in = d.keepNames(in)
	if err := cmp.Or(v.checkPercentages(in.DeploymentConfiguration), checkReached(o.def, in)); err != nil {
		return shapes.ServiceOutput{}, err
	}
	v.apply(in)
	for _, d := range v.Deployments { // existing tasks remain unchanged
		d.run.EnableECSManagedTags = taskdef.Or(in.EnableECSManagedTags, d.run.EnableECSManagedTags)
		d.run.EnableExecuteCommand = taskdef.Or(in.EnableExecuteCommand, d.run.EnableExecuteCommand)
	}
	if in.ForceNewDeployment || !same(run, d.run) || !d.sameNames(in) {
		v.deploy(run, in, call.Now)
	} else if in.DesiredCount != nil || in.DeploymentConfiguration != nil {
		v.steady = false
		d.Updated = call.Now
	}
	a.state.notify()
	return a.output(v, call.Now), nil
}

// same reports whether tasks of both are alike. Constraints are refused unless they
// are empty.
func same(a, b shapes.RunTaskInput) bool {
	a.PlacementConstraints, a.PlacementStrategy = b.PlacementConstraints, b.PlacementStrategy
	return fingerprint(a) == fingerprint(b)
}

// DeleteService makes a service DRAINING until its tasks have stopped, then
// INACTIVE. Force is for one with a desired count.
func (a *serviceAPI) DeleteService(call shapes.Call, in shapes.DeleteServiceInput) (shapes.ServiceOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	v, err := a.state.service(in.Cluster, in.Service)
	switch {
	case err != nil:
		return shapes.ServiceOutput{}, err
	case v.status == shapes.Inactive:
		return shapes.ServiceOutput{}, notFound()
	case v.Desired > 0 && !in.Force && v.status == shapes.Active:
		return shapes.ServiceOutput{}, shapes.Invalid("The service cannot be stopped while it is scaled above 0.")
	}
	v.status, v.Draining, v.Desired, v.history = shapes.Draining, true, 0, nil
	a.state.notify()
	return a.output(v, call.Now), nil
}

func (s *state) service(cluster, ref string) (*Service, error) {
	c, err := s.cluster(cluster)
	if err != nil {
		return nil, err
	}
	if ref == "" {
		return nil, shapes.Client("Service can not be blank.")
	}
	if ref, err = s.account.ServiceName(c.name, ref); err != nil {
		return nil, err
	}
	if v := s.services[s.account.Service(c.name, ref)]; v != nil {
		return v, nil
	}
	return nil, notFound()
}

func notFound() error { return shapes.Errorf(shapes.ServiceNotFound, "Service not found.") }

func checkCreate(in shapes.ServiceInput) error {
	switch {
	case in.ServiceName == "":
		return shapes.Client("Service name can not be blank.")
	case !taskdef.ValidName(in.ServiceName):
		return shapes.Invalid("Service names can have up to 255 characters; uppercase and lowercase letters, " +
			"numbers, hyphens, and underscores are allowed.")
	case in.DesiredCount == nil && in.SchedulingStrategy != daemon:
		return shapes.Invalid("The desired count must be specified for a service with the REPLICA scheduling strategy.")
	}
	return cmp.Or(checkSettings(in), Tags(in.Tags))
}

func checkSettings(in shapes.ServiceInput) error {
	switch {
	case in.DesiredCount != nil && *in.DesiredCount < 0:
		return shapes.Invalid("Desired count must not be negative.")
	case in.HealthCheckGracePeriod != nil && *in.HealthCheckGracePeriod < 0:
		return shapes.Invalid("healthCheckGracePeriodSeconds must not be negative.")
	}
	return cmp.Or(unsupported(in),
		checkDeployment(taskdef.Or(in.DeploymentConfiguration, shapes.DeploymentConfiguration{})),
		enum("availabilityZoneRebalancing", []string{in.ZoneRebalancing}, enabled, disabled),
		checkPropagateTags(in.PropagateTags), checkSchedulingStrategy(in.SchedulingStrategy))
}

func checkDeployment(c shapes.DeploymentConfiguration) error {
	if p := taskdef.Or(c.MaximumPercent, 200); p < 1 || p > 200 {
		return shapes.Invalid("maximumPercent must be between 1 and 200.")
	}
	if p := taskdef.Or(c.MinimumHealthyPercent, 100); p < 0 || p > 100 {
		return shapes.Invalid("minimumHealthyPercent must be between 0 and 100.")
	}
	if c.CircuitBreaker == nil || c.CircuitBreaker.Threshold == nil {
		return nil
	}
	t := *c.CircuitBreaker.Threshold
	if t.Value < 1 {
		return shapes.Invalid("thresholdConfiguration.value must be at least 1.")
	}
	return enum("thresholdConfiguration.type", []string{t.Type}, shapes.Count, shapes.BoundedPercent,
		shapes.UnboundedPercent)
}

func (v *Service) checkPercentages(c *shapes.DeploymentConfiguration) error {
	upper, lower := v.Max, v.MinHealthy
	if c != nil {
		upper, lower = taskdef.Or(c.MaximumPercent, upper), taskdef.Or(c.MinimumHealthyPercent, lower)
	}
	if upper == 100 && lower == 100 {
		return shapes.Invalid("Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block " +
			"deployments.")
	}
	return nil
}

// daemon is the scheduling strategy that localecs does not have.
const daemon = "DAEMON"

// unsupported refuses what localecs does not have, rather than ignore it.
func unsupported(in shapes.ServiceInput) error {
	c, of := taskdef.Or(in.DeploymentConfiguration, shapes.DeploymentConfiguration{}), in.DeploymentController
	for _, feature := range []struct {
		requested bool
		what      string
	}{
		{len(in.LoadBalancers) > 0, "loadBalancers"},
		{len(in.VolumeConfigurations) > 0, "volumeConfigurations"},
		{len(in.VPCLattice) > 0, "vpcLatticeConfigurations"},
		{in.SchedulingStrategy == daemon, "the DAEMON schedulingStrategy"},
		{of != nil && of.Type != "" && of.Type != "ECS", "a deploymentController other than ECS"},
		{in.Role != "", "role"},
		{len(in.GatewayConnectors) > 0, "gatewayConnectors"},
		{len(in.Monitoring) > 0, "monitoring"},
		{c.Strategy != "" && c.Strategy != "ROLLING", "a deployment strategy other than ROLLING"},
		{c.Alarms != nil && c.Alarms.Enable, "deploymentConfiguration.alarms"},
		{c.BakeTimeInMinutes > 0, "deploymentConfiguration.bakeTimeInMinutes"},
		{len(c.LifecycleHooks) > 0, "deploymentConfiguration.lifecycleHooks"},
		{len(c.Linear) > 0, "deploymentConfiguration.linearConfiguration"},
		{len(c.Canary) > 0, "deploymentConfiguration.canaryConfiguration"},
		{c.EarlySuccess != nil && c.EarlySuccess.Enable, "deploymentConfiguration.earlySuccessCriteria"},
	} {
		if feature.requested {
			return notSupported(feature.what)
		}
	}
	return nil
}

func notSupported(what string) error {
	return shapes.Errorf(shapes.UnsupportedFeature, "localecs does not have %s: leave it out.", what)
}
