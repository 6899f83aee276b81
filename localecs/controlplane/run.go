package controlplane

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/input"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/controlplane/registry"
	"github.com/meshtask/consul-ecs/localecs/controlplane/strategy"
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

// clientTokenLife is how long a client token stands for its first call.
const clientTokenLife = 24 * time.Hour

// idempotent is what a client token stands for.
type idempotent struct {
	input string
	tasks []string // IDs
	at    time.Time
}

// order is a checked wish for tasks.
type order struct {
	cluster  *cluster
	revision *registry.Revision
	def      *taskdef.TaskDefinition // with overrides
	count    int
	// providers are the tasks' capacity providers; none for a launch type.
	providers []string
	service   string
	tags      []ecs.Tag
	input     ecs.RunTaskInput
}

// provider is that of the i-th task.
func (o *order) provider(i int) string {
	if o.providers == nil {
		return ""
	}
	return o.providers[i]
}

// RunTask starts tasks. They are PROVISIONING in the answer.
func (p *Plane) RunTask(call ecs.Call, in ecs.RunTaskInput) (ecs.TasksOutput, error) {
	if strings.HasPrefix(in.Group, "service:") {
		return ecs.TasksOutput{}, ecs.Invalid("Invalid namespace for group.")
	}
	if in.PropagateTags == "SERVICE" {
		return ecs.TasksOutput{}, ecs.Invalid("propagateTags cannot be SERVICE when running a task.")
	}
	return p.run(call, in, origin{})
}

// origin is who starts tasks: somebody who calls the API when it is zero.
type origin struct {
	// service is empty for standalone tasks.
	service string
	// anywhere takes definitions that are not for Fargate, and inactive ones.
	anywhere bool
	// kept takes inactive definitions: a service goes on with its own.
	kept bool
}

// run starts tasks of a service, or standalone ones.
func (p *Plane) run(call ecs.Call, in ecs.RunTaskInput, by origin) (ecs.TasksOutput, error) {
	out := ecs.TasksOutput{Tasks: []ecs.Task{}, Failures: []ecs.Failure{}}
	if err := checkRun(in); err != nil {
		return out, err
	}
	p.mu.Lock()
	o, err := p.order(in, by)
	if err != nil {
		p.mu.Unlock()
		return out, err
	}
	again, err := p.repeated(call, o)
	if err != nil || again != nil {
		defer p.mu.Unlock()
		for _, r := range again {
			out.Tasks = append(out.Tasks, r.Shape(call.Now, p.lag, true))
		}
		return out, err
	}
	if p.launches != nil && !by.anywhere && !p.launches.AllowN(call.Now, o.count) {
		p.mu.Unlock()
		return out, ecs.Errorf(ecs.ThrottlingException, "Rate exceeded")
	}
	var launches []Launch
	var ids []string
	for i := range o.count {
		r := p.create(call, o, i)
		ids = append(ids, r.ID)
		out.Tasks = append(out.Tasks, r.Shape(call.Now, record.Lag{}, true))
		launches = append(launches, p.launch(r, in.ReferenceID))
	}
	if in.ClientToken != "" {
		p.tokens[tokenKey(o)] = idempotent{input: fingerprint(in), tasks: ids, at: call.Now}
	}
	p.mu.Unlock()
	// The launcher may report before it returns.
	for _, l := range launches {
		p.launcher.Launch(l)
		p.remind(l.ID)
	}
	return out, nil
}

// remind asks the launcher again to stop a task that it has just got: another
// call may have found the record, and asked in vain, before.
func (p *Plane) remind(id string) {
	p.mu.Lock()
	r := p.tasks[id]
	stopping := r != nil && r.Task.DesiredStatus == ecs.Stopped && r.Task.LastStatus != ecs.Stopped
	var code, reason string
	if stopping {
		code, reason = r.Task.StopCode, r.Task.StoppedReason
	}
	p.mu.Unlock()
	if stopping {
		p.launcher.Stop(id, code, reason)
	}
}

// checkRun looks at the input alone.
func checkRun(in ecs.RunTaskInput) error {
	if in.TaskDefinition == "" {
		return ecs.Client("TaskDefinition can not be blank.")
	}
	if in.Count != nil && (*in.Count < 1 || *in.Count > maxCount) {
		return ecs.Invalid("count must be between 1 and %d.", maxCount)
	}
	if len(in.CapacityProviderStrategy) > 0 && in.LaunchType != "" {
		return ecs.Invalid("Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}
	return input.FirstOf(
		input.Enum("launchType", []string{in.LaunchType}, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"),
		input.Enum("propagateTags", []string{in.PropagateTags}, "TASK_DEFINITION", "SERVICE", "NONE"),
		input.Short("startedBy", in.StartedBy, maxStartedBy),
		input.Short("clientToken", in.ClientToken, maxClientToken),
		input.Tags(in.Tags),
	)
}

// order resolves what the input names. A service goes on with a revision that
// is not active any more.
func (p *Plane) order(in ecs.RunTaskInput, by origin) (*order, error) {
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return nil, err
	}
	r, err := p.Find(in.TaskDefinition)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, ecs.Client("TaskDefinition not found.")
	case r.Status != ecs.Active && by == (origin{}):
		return nil, ecs.Client("TaskDefinition is inactive")
	}
	o := &order{cluster: c, revision: r, count: 1, service: by.service, input: in}
	if in.Count != nil {
		o.count = *in.Count
	}
	wanted, err := strategyOf(c, in)
	if err != nil {
		return nil, err
	}
	o.providers = strategy.Spread(wanted, p.placed(c, by.service, in.StartedBy), o.count)
	if err := checkFargate(r, in); err != nil && !by.anywhere {
		return nil, err
	}
	if err := checkNetwork(r.Definition, in.NetworkConfiguration); err != nil {
		return nil, err
	}
	if o.def, err = registry.Override(r.Definition, in.Overrides, !by.anywhere); err != nil {
		return nil, err
	}
	if in.PropagateTags == "TASK_DEFINITION" {
		o.tags = slices.Clone(r.Tags)
	}
	o.tags = input.MergeTags(o.tags, in.Tags...)
	if in.EnableECSManagedTags {
		o.tags = input.MergeTags(o.tags, ecs.Tag{Key: "aws:ecs:clusterName", Value: c.name})
		if by.service != "" {
			o.tags = input.MergeTags(o.tags, ecs.Tag{Key: "aws:ecs:serviceName", Value: by.service})
		}
	}
	return o, nil
}

// strategyOf decides who runs the tasks: Fargate, by launch type (which is no
// strategy) or capacity providers. Without either the cluster's strategy decides,
// and without that it is EC2, which has no instances here.
func strategyOf(c *cluster, in ecs.RunTaskInput) ([]ecs.StrategyItem, error) {
	wanted := in.CapacityProviderStrategy
	switch {
	case in.LaunchType == ecs.Fargate:
		return nil, nil
	case in.LaunchType == "" && len(wanted) == 0:
		wanted = c.strategy
	}
	if len(wanted) == 0 {
		return nil, ecs.Invalid("No Container Instances were found in your cluster.")
	}
	return wanted, strategy.Check(c.providers, wanted)
}

// placed are the tasks that a service's deployment has on each capacity provider:
// each RunTask is spread by itself.
func (p *Plane) placed(c *cluster, service, deployment string) map[string]int {
	running := map[string]int{}
	for _, r := range p.records {
		if service != "" && r.Cluster == c.name && r.Service == service && r.Task.StartedBy == deployment && r.Task.DesiredStatus == ecs.Running {
			running[r.Task.CapacityProviderName]++
		}
	}
	return running
}

func checkFargate(r *registry.Revision, in ecs.RunTaskInput) error {
	switch {
	case !slices.Contains(r.Compatibilities, ecs.Fargate):
		return ecs.Invalid("Task definition does not support launch_type FARGATE.")
	case len(in.PlacementConstraints) > 0:
		return ecs.Invalid("Placement constraints are not supported with FARGATE launch type.")
	case len(in.PlacementStrategy) > 0:
		return ecs.Invalid("Placement strategies are not supported with FARGATE launch type.")
	case !slices.Contains([]string{"", "LATEST", ecs.PlatformVersion}, in.PlatformVersion):
		return ecs.Errorf(ecs.PlatformUnknown, "The specified platform does not exist.")
	}
	return nil
}

func checkNetwork(def *taskdef.TaskDefinition, n *ecs.NetworkConfiguration) error {
	given := n != nil && n.AWSVPC != nil
	switch {
	case def.NetworkMode != "awsvpc" && given:
		return ecs.Invalid("Network Configuration is not valid for the given networkMode of this task definition.")
	case def.NetworkMode != "awsvpc":
		return nil
	case !given:
		return ecs.Invalid("Network Configuration must be provided when networkMode 'awsvpc' is specified.")
	case len(n.AWSVPC.Subnets) == 0:
		return ecs.Invalid("subnets can not be empty.")
	}
	for _, s := range n.AWSVPC.Subnets {
		if !strings.HasPrefix(s, "subnet-") {
			return ecs.Invalid("Error retrieving subnet information for [%s]: The subnet ID '%s' does not exist (ErrorCode: InvalidSubnetID.NotFound)", s, s)
		}
	}
	return input.FirstOf(
		input.AtMost("subnets", len(n.AWSVPC.Subnets), maxSubnets),
		input.AtMost("securityGroups", len(n.AWSVPC.SecurityGroups), maxSecurityGroups),
		input.Enum("assignPublicIp", []string{n.AWSVPC.AssignPublicIP}, "ENABLED", "DISABLED"),
	)
}

// repeated finds the tasks of an earlier call with the same client token.
func (p *Plane) repeated(call ecs.Call, o *order) ([]*record.Record, error) {
	first, known := p.tokens[tokenKey(o)]
	if o.input.ClientToken == "" || !known || call.Now.Sub(first.at) >= clientTokenLife {
		return nil, nil
	}
	if first.input != fingerprint(o.input) {
		err := ecs.Errorf(ecs.ConflictException, "The provided clientToken is already in use with a different RunTask request.")
		for _, id := range first.tasks {
			err.ResourceIDs = append(err.ResourceIDs, p.account.Task(o.cluster.name, id))
		}
		return nil, err
	}
	found := []*record.Record{}
	for _, id := range first.tasks {
		if r := p.tasks[id]; r != nil {
			found = append(found, r)
		}
	}
	return found, nil
}

func tokenKey(o *order) string { return o.cluster.name + "/" + o.input.ClientToken }

// fingerprint tells inputs apart.
func fingerprint(in ecs.RunTaskInput) string {
	text, _ := json.Marshal(in) // cannot fail: it has come out of JSON
	return string(text)
}
