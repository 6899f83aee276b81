package controlplane

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

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
	revision *Revision
	def      *taskdef.TaskDefinition // with overrides
	count    int
	// providers are the tasks' capacity providers; none for a launch type.
	providers []string
	service   string
	tags      []shapes.Tag
	input     shapes.RunTaskInput
}

// provider is that of the i-th task.
func (o *order) provider(i int) string {
	if o.providers == nil {
		return ""
	}
	return o.providers[i]
}

// RunTask starts tasks. They are PROVISIONING in the answer.
func (p *Plane) RunTask(call shapes.Call, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	if strings.HasPrefix(in.Group, "service:") {
		return shapes.TasksOutput{}, shapes.Invalid("Invalid namespace for group.")
	}
	if in.PropagateTags == "SERVICE" {
		return shapes.TasksOutput{}, shapes.Invalid("propagateTags cannot be SERVICE when running a task.")
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
func (p *Plane) run(call shapes.Call, in shapes.RunTaskInput, by origin) (shapes.TasksOutput, error) {
	out := shapes.TasksOutput{Tasks: []shapes.Task{}, Failures: []shapes.Failure{}}
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
		return out, shapes.Errorf(shapes.ThrottlingException, "Rate exceeded")
	}
	var launches []Launch
	var ids []string
	for i := range o.count {
		r := p.create(call, o, i)
		ids = append(ids, r.ID)
		out.Tasks = append(out.Tasks, r.Shape(call.Now, Lag{}, true))
		launches = append(launches, p.launch(r, in.ReferenceID))
	}
	if in.ClientToken != "" {
		p.tokens[tokenKey(o)] = idempotent{input: runFingerprint(in), tasks: ids, at: call.Now}
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
	stopping := r != nil && r.Task.DesiredStatus == shapes.Stopped && r.Task.LastStatus != shapes.Stopped
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
func checkRun(in shapes.RunTaskInput) error {
	if in.TaskDefinition == "" {
		return shapes.Client("TaskDefinition can not be blank.")
	}
	if in.Count != nil && (*in.Count < 1 || *in.Count > maxCount) {
		return shapes.Invalid("count must be between 1 and %d.", maxCount)
	}
	if len(in.CapacityProviderStrategy) > 0 && in.LaunchType != "" {
		return shapes.Invalid("Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}
	return FirstOf(
		Enum("launchType", []string{in.LaunchType}, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"),
		Enum("propagateTags", []string{in.PropagateTags}, "TASK_DEFINITION", "SERVICE", "NONE"),
		Short("startedBy", in.StartedBy, maxStartedBy),
		Short("clientToken", in.ClientToken, maxClientToken),
		Tags(in.Tags),
	)
}

// order resolves what the input names. A service goes on with a revision that
// is not active any more.
func (p *Plane) order(in shapes.RunTaskInput, by origin) (*order, error) {
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return nil, err
	}
	r, err := p.Find(in.TaskDefinition)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, shapes.Client("TaskDefinition not found.")
	case r.Status != shapes.Active && by == (origin{}):
		return nil, shapes.Client("TaskDefinition is inactive")
	}
	o := &order{cluster: c, revision: r, count: 1, service: by.service, input: in}
	if in.Count != nil {
		o.count = *in.Count
	}
	wanted, err := strategyOf(c, in)
	if err != nil {
		return nil, err
	}
	o.providers = Spread(wanted, p.placed(c, by.service, in.StartedBy), o.count)
	if err := checkFargate(r, in); err != nil && !by.anywhere {
		return nil, err
	}
	if err := checkNetwork(r.Definition, in.NetworkConfiguration); err != nil {
		return nil, err
	}
	if o.def, err = Override(r.Definition, in.Overrides, !by.anywhere); err != nil {
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

// strategyOf decides who runs the tasks: Fargate, by launch type (which is no
// strategy) or capacity providers. Without either the cluster's strategy decides,
// and without that it is EC2, which has no instances here.
func strategyOf(c *cluster, in shapes.RunTaskInput) ([]shapes.StrategyItem, error) {
	wanted := in.CapacityProviderStrategy
	switch {
	case in.LaunchType == shapes.Fargate:
		return nil, nil
	case in.LaunchType == "" && len(wanted) == 0:
		wanted = c.strategy
	}
	if len(wanted) == 0 {
		return nil, shapes.Invalid("No Container Instances were found in your cluster.")
	}
	return wanted, Check(c.providers, wanted)
}

// placed are the tasks that a service's deployment has on each capacity provider:
// each RunTask is spread by itself.
func (p *Plane) placed(c *cluster, service, deployment string) map[string]int {
	running := map[string]int{}
	for _, r := range p.records {
		if service != "" && r.Cluster == c.name && r.Service == service && r.Task.StartedBy == deployment && r.Task.DesiredStatus == shapes.Running {
			running[r.Task.CapacityProviderName]++
		}
	}
	return running
}

func checkFargate(r *Revision, in shapes.RunTaskInput) error {
	switch {
	case !slices.Contains(r.Compatibilities, shapes.Fargate):
		return shapes.Invalid("Task definition does not support launch_type FARGATE.")
	case len(in.PlacementConstraints) > 0:
		return shapes.Invalid("Placement constraints are not supported with FARGATE launch type.")
	case len(in.PlacementStrategy) > 0:
		return shapes.Invalid("Placement strategies are not supported with FARGATE launch type.")
	case !slices.Contains([]string{"", "LATEST", shapes.PlatformVersion}, in.PlatformVersion):
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
			return shapes.Invalid("Error retrieving subnet information for [%s]: The subnet ID '%s' does not exist (ErrorCode: InvalidSubnetID.NotFound)", s, s)
		}
	}
	return FirstOf(
		AtMost("subnets", len(n.AWSVPC.Subnets), maxSubnets),
		AtMost("securityGroups", len(n.AWSVPC.SecurityGroups), maxSecurityGroups),
		Enum("assignPublicIp", []string{n.AWSVPC.AssignPublicIP}, "ENABLED", "DISABLED"),
	)
}

// repeated finds the tasks of an earlier call with the same client token.
func (p *Plane) repeated(call shapes.Call, o *order) ([]*Record, error) {
	first, known := p.tokens[tokenKey(o)]
	if o.input.ClientToken == "" || !known || call.Now.Sub(first.at) >= clientTokenLife {
		return nil, nil
	}
	if first.input != runFingerprint(o.input) {
		err := shapes.Errorf(shapes.ConflictException, "The provided clientToken is already in use with a different RunTask request.")
		for _, id := range first.tasks {
			err.ResourceIDs = append(err.ResourceIDs, p.account.Task(o.cluster.name, id))
		}
		return nil, err
	}
	found := []*Record{}
	for _, id := range first.tasks {
		if r := p.tasks[id]; r != nil {
			found = append(found, r)
		}
	}
	return found, nil
}

func tokenKey(o *order) string { return o.cluster.name + "/" + o.input.ClientToken }

// fingerprint tells inputs apart.
func runFingerprint(in shapes.RunTaskInput) string {
	text, _ := json.Marshal(in) // cannot fail: it has come out of JSON
	return string(text)
}
