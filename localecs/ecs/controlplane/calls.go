package controlplane

import (
	"crypto/rand"
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// CreateService makes a service, or answers with the one of that name when all
// of its input is the same.
func (s *Services) CreateService(call shapes.Call, in shapes.ServiceInput) (shapes.ServiceOutput, error) {
	if err := checkCreate(in); err != nil {
		return shapes.ServiceOutput{}, err
	}
	run, r, err := s.plane.ForService(orderOf(in, shapes.RunTaskInput{PlatformVersion: latest}), false)
	if err != nil {
		return shapes.ServiceOutput{}, err
	}
	cluster := run.Cluster
	s.mu.Lock()
	defer s.mu.Unlock()
	if again, err := s.repeated(cluster, in); again != nil || err != nil {
		return s.output(again, call.Now), err
	}
	v := &service{
		key: key{cluster, in.ServiceName}, status: shapes.Active, first: serviceFingerprint(in),
		Service:  Service{Name: in.ServiceName, MinHealthy: 100, Max: 200},
		settings: map[string]shapes.RunTaskInput{}, revisions: map[string]revision{},
		propagate: in.PropagateTags, rebalance: enabled, tags: in.Tags, created: call.Now, createdBy: call.Principal,
	}
	if err := v.checkPercentages(in.DeploymentConfiguration); err != nil {
		return shapes.ServiceOutput{}, err
	}
	v.apply(in)
	v.begin(run, revision{arn: r.ARN, probed: probed(r.Definition)}, call.Now)
	s.byKey[v.key] = v
	if in.ClientToken != "" {
		s.tokens[cluster+"/"+in.ClientToken] = token{fingerprint: v.first, service: v, at: call.Now}
	}
	s.Notify()
	return s.output(v, call.Now), nil
}

// repeated finds what an earlier call has made.
func (s *Services) repeated(cluster string, in shapes.ServiceInput) (*service, error) {
	if t, known := s.tokens[cluster+"/"+in.ClientToken]; known && in.ClientToken != "" && t.service.status == shapes.Active {
		if t.fingerprint != serviceFingerprint(in) {
			return nil, notIdempotent()
		}
		return t.service, nil
	}
	switch v := s.byKey[key{cluster, in.ServiceName}]; {
	case v == nil || v.status == shapes.Inactive:
		return nil, nil
	case v.status == shapes.Draining:
		return nil, shapes.Invalid("Unable to Start a service that is still Draining.")
	case v.first != serviceFingerprint(in):
		return nil, notIdempotent()
	default:
		return v, nil
	}
}

func notIdempotent() error { return shapes.Invalid("Creation of service was not idempotent.") }

// fingerprint tells inputs apart, but for their tokens.
func serviceFingerprint(in shapes.ServiceInput) string {
	in.ClientToken = ""
	text, _ := json.Marshal(in) // cannot fail: it has come out of JSON
	return string(text)
}

// orderOf puts what the input says about tasks over what there was.
func orderOf(in shapes.ServiceInput, run shapes.RunTaskInput) shapes.RunTaskInput {
	if in.TaskDefinition != "" {
		run.TaskDefinition = in.TaskDefinition
	}
	if in.NetworkConfiguration != nil {
		run.NetworkConfiguration = withDefaults(in.NetworkConfiguration)
	}
	if in.LaunchType != "" {
		run.LaunchType = in.LaunchType
	}
	if in.CapacityProviderStrategy != nil {
		run.CapacityProviderStrategy = in.CapacityProviderStrategy
		run.LaunchType = in.LaunchType
	}
	if in.PlatformVersion != "" {
		run.PlatformVersion = in.PlatformVersion
	}
	if in.EnableECSManagedTags != nil {
		run.EnableECSManagedTags = *in.EnableECSManagedTags
	}
	if in.EnableExecuteCommand != nil {
		run.EnableExecuteCommand = *in.EnableExecuteCommand
	}
	if in.Cluster != "" {
		run.Cluster = in.Cluster
	}
	run.PlacementConstraints, run.PlacementStrategy = in.PlacementConstraints, in.PlacementStrategy
	return run
}

// latest is the platform version of services that name none.
const latest = "LATEST"

// withDefaults is a network configuration with what AWS adds, so that saying it
// is no change.
func withDefaults(n *shapes.NetworkConfiguration) *shapes.NetworkConfiguration {
	if n.AWSVPC == nil {
		return n
	}
	vpc := *n.AWSVPC
	if vpc.SecurityGroups == nil {
		vpc.SecurityGroups = []string{}
	}
	if vpc.AssignPublicIP == "" {
		vpc.AssignPublicIP = "DISABLED"
	}
	return &shapes.NetworkConfiguration{AWSVPC: &vpc}
}

// enabled is what CreateService makes of no availabilityZoneRebalancing.
const enabled = "ENABLED"

// apply takes over what needs no new deployment.
func (v *service) apply(in shapes.ServiceInput) {
	if in.DesiredCount != nil {
		v.Desired = *in.DesiredCount
	}
	if g := in.HealthCheckGracePeriod; g != nil {
		v.grace, v.Grace = g, time.Duration(*g)*time.Second
	}
	if in.PropagateTags != "" {
		v.propagate = in.PropagateTags
	}
	if in.ZoneRebalancing != "" {
		v.rebalance = in.ZoneRebalancing
	}
	if c := in.DeploymentConfiguration; c != nil {
		if c.MaximumPercent != nil {
			v.Max = *c.MaximumPercent
		}
		if c.MinimumHealthyPercent != nil {
			v.MinHealthy = *c.MinimumHealthyPercent
		}
		if b := c.CircuitBreaker; b != nil {
			v.Breaker = Breaker(*b)
		}
	}
}

// begin begins a deployment.
func (v *service) begin(run shapes.RunTaskInput, r revision, now time.Time) {
	d := NewDeployment(newDeploymentID(), now)
	v.settings[d.ID], v.revisions[d.ID] = run, r
	v.Began(d)
}

// newDeploymentID is ecs-svc/ and 19 digits.
func newDeploymentID() string {
	const least = 1_000_000_000_000_000_000
	n, _ := rand.Int(rand.Reader, big.NewInt(8*least)) // never fails
	return "ecs-svc/" + n.Add(n, big.NewInt(least)).String()
}

// UpdateService changes what is wanted. What concerns tasks begins a deployment;
// the desired count and how deployments go do not.
func (s *Services) UpdateService(call shapes.Call, in shapes.ServiceInput) (shapes.ServiceOutput, error) {
	if err := checkSettings(in); err != nil {
		return shapes.ServiceOutput{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.find(in.Cluster, in.Service)
	switch {
	case err != nil:
		return shapes.ServiceOutput{}, err
	case v.status != shapes.Active:
		return shapes.ServiceOutput{}, shapes.Errorf(shapes.ServiceNotActive, "Service was not ACTIVE.")
	}
	if err := v.checkPercentages(in.DeploymentConfiguration); err != nil {
		return shapes.ServiceOutput{}, err
	}
	in.Cluster = v.cluster
	d := v.Deployments[0]
	run := orderOf(in, v.settings[d.ID])
	if in.CapacityProviderStrategy != nil && len(in.CapacityProviderStrategy) == 0 { // back to the launch type
		run.CapacityProviderStrategy, run.LaunchType = nil, shapes.Fargate
	}
	r, err := s.check(run, in.TaskDefinition == "" || in.TaskDefinition == v.revisions[d.ID].arn)
	if err != nil {
		return shapes.ServiceOutput{}, err
	}
	run.TaskDefinition = r.arn
	v.apply(in)
	v.allow(in)
	if in.ForceNewDeployment || !same(run, v.settings[d.ID]) {
		v.begin(run, *r, call.Now)
	} else if in.DesiredCount != nil || in.DeploymentConfiguration != nil {
		v.Changed()
		d.Updated = call.Now
	}
	s.Notify()
	return s.output(v, call.Now), nil
}

// allow takes over what concerns tasks and needs no new deployment: those that
// are there stay as they are.
func (v *service) allow(in shapes.ServiceInput) {
	for id, run := range v.settings {
		if in.EnableECSManagedTags != nil {
			run.EnableECSManagedTags = *in.EnableECSManagedTags
		}
		if in.EnableExecuteCommand != nil {
			run.EnableExecuteCommand = *in.EnableExecuteCommand
		}
		v.settings[id] = run
	}
}

// check resolves a revision that is to be run; a service may keep one that is
// not active any more.
func (s *Services) check(run shapes.RunTaskInput, kept bool) (*revision, error) {
	_, r, err := s.plane.ForService(run, kept)
	if err != nil {
		return nil, err
	}
	return &revision{arn: r.ARN, probed: probed(r.Definition)}, nil
}

// same reports whether tasks of both are alike. Constraints are refused unless they
// are empty.
func same(a, b shapes.RunTaskInput) bool {
	a.PlacementConstraints, a.PlacementStrategy = b.PlacementConstraints, b.PlacementStrategy
	x, _ := json.Marshal(a) // cannot fail: both have come out of JSON
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// DeleteService makes a service DRAINING until its tasks have stopped, then
// INACTIVE. Force is for one that still wants tasks.
func (s *Services) DeleteService(call shapes.Call, in shapes.DeleteServiceInput) (shapes.ServiceOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.find(in.Cluster, in.Service)
	switch {
	case err != nil:
		return shapes.ServiceOutput{}, err
	case v.status == shapes.Inactive:
		return shapes.ServiceOutput{}, notFound()
	case v.Desired > 0 && !in.Force && v.status == shapes.Active:
		return shapes.ServiceOutput{}, shapes.Invalid("The service cannot be stopped while it is scaled above 0.")
	}
	v.status, v.Draining, v.Desired = shapes.Draining, true, 0
	s.Notify()
	return s.output(v, call.Now), nil
}

// find finds a service by name or ARN, those that are not active too.
func (s *Services) find(cluster, ref string) (*service, error) {
	name, err := s.plane.ClusterName(cluster)
	if err != nil {
		return nil, err
	}
	if ref == "" {
		return nil, shapes.Client("Service can not be blank.")
	}
	if ref, err = s.account.ServiceName(name, ref); err != nil {
		return nil, err
	}
	if v := s.byKey[key{name, ref}]; v != nil {
		return v, nil
	}
	return nil, notFound()
}

func notFound() error { return shapes.Errorf(shapes.ServiceNotFound, "Service not found.") }

// checkCreate looks at the input of CreateService alone.
func checkCreate(in shapes.ServiceInput) error {
	switch {
	case in.ServiceName == "":
		return shapes.Client("Service name can not be blank.")
	case !taskdef.ValidName(in.ServiceName):
		return shapes.Invalid("Service names can have up to 255 characters; uppercase and lowercase letters, numbers, hyphens, and underscores are allowed.")
	case in.DesiredCount == nil && in.SchedulingStrategy != "DAEMON":
		return shapes.Invalid("The desired count must be specified for a service with the REPLICA scheduling strategy.")
	}
	return FirstOf(checkSettings(in), Tags(in.Tags))
}

// checkSettings looks at what both calls take.
func checkSettings(in shapes.ServiceInput) error {
	c := in.DeploymentConfiguration
	switch {
	case in.DesiredCount != nil && *in.DesiredCount < 0:
		return shapes.Invalid("Desired count must not be negative.")
	case in.HealthCheckGracePeriod != nil && *in.HealthCheckGracePeriod < 0:
		return shapes.Invalid("healthCheckGracePeriodSeconds must not be negative.")
	case c != nil && c.MaximumPercent != nil && (*c.MaximumPercent < 1 || *c.MaximumPercent > 200):
		return shapes.Invalid("maximumPercent must be between 1 and 200.")
	case c != nil && c.MinimumHealthyPercent != nil && (*c.MinimumHealthyPercent < 0 || *c.MinimumHealthyPercent > 100):
		return shapes.Invalid("minimumHealthyPercent must be between 0 and 100.")
	}
	return FirstOf(unserved(in),
		Enum("availabilityZoneRebalancing", []string{in.ZoneRebalancing}, enabled, "DISABLED"),
		Enum("propagateTags", []string{in.PropagateTags}, "TASK_DEFINITION", "SERVICE", "NONE"),
		Enum("schedulingStrategy", []string{in.SchedulingStrategy}, "REPLICA", "DAEMON"))
}

// checkPercentages looks at what the percentages will be.
func (v *service) checkPercentages(c *shapes.DeploymentConfiguration) error {
	upper, lower := v.Max, v.MinHealthy
	if c != nil && c.MaximumPercent != nil {
		upper = *c.MaximumPercent
	}
	if c != nil && c.MinimumHealthyPercent != nil {
		lower = *c.MinimumHealthyPercent
	}
	if upper == 100 && lower == 100 {
		return shapes.Invalid("Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.")
	}
	return nil
}

// unserved refuses what localecs does not have, rather than ignore it.
func unserved(in shapes.ServiceInput) error {
	what := ""
	switch c := in.DeploymentConfiguration; {
	case len(in.LoadBalancers) > 0:
		what = "loadBalancers"
	case len(in.ServiceRegistries) > 0:
		what = "serviceRegistries"
	case in.ServiceConnect != nil && in.ServiceConnect.Enabled:
		what = "serviceConnectConfiguration"
	case len(in.VolumeConfigurations) > 0:
		what = "volumeConfigurations"
	case len(in.VPCLattice) > 0:
		what = "vpcLatticeConfigurations"
	case in.SchedulingStrategy == "DAEMON":
		what = "the DAEMON schedulingStrategy"
	case in.DeploymentController != nil && !slices.Contains([]string{"", "ECS"}, in.DeploymentController.Type):
		what = "a deploymentController other than ECS"
	case c != nil && !slices.Contains([]string{"", "ROLLING"}, c.Strategy):
		what = "a deployment strategy other than ROLLING"
	default:
		return nil
	}
	return shapes.Errorf(shapes.UnsupportedFeature, "localecs does not have %s: leave it out.", what)
}
