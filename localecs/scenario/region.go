package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// open opens the region that tasks run in, with one cluster.
func (r *runner) open(o Options) error {
	f := r.file
	var output func(task, container string, line []byte)
	if r.plan.alone != nil {
		output = r.output
	}
	var err error
	r.region, err = cluster.OpenRegion(cluster.RegionOptions{
		Cluster: cluster.Options{
			Name: f.Cluster, Region: f.Region, Account: f.Account,
			Network: r.plan.network, Subnet: f.Subnet,
			AtOnce: f.StopOrder == file.StopAtOnce, GatePeriod: f.GatePeriod, TimeScale: f.TimeScale,
			Docker: o.Docker, Dir: o.Dir, Images: r.plan.images, Roles: r.plan.roles, Secrets: f.Secrets, EnvironmentFiles: r.plan.environmentFiles,
			Added:   f.Added(),
			Observe: r.clusterChanged, Output: output, Log: o.Log,
		},
		Throttle: f.API.Throttle, Lag: f.API.Lag, Name: r.taskName, Started: r.launched, SkipWarnings: true, Log: o.Log,
	})
	if err != nil {
		return err
	}
	r.cluster = r.region.Cluster()
	if f.Cluster == shapes.Default {
		return nil
	}
	_, err = r.region.Plane().CreateCluster(r.region.Call(), shapes.CreateClusterInput{
		ClusterName: f.Cluster, CapacityProviders: []string{shapes.Fargate},
		DefaultCapacityProviderStrategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
	})
	if err != nil {
		return errors.Join(fmt.Errorf("create cluster %s: %w", f.Cluster, err), r.region.Close())
	}
	return nil
}

// taskName returns a new task's name in the scenario, or the next of its service. A task
// that no step starts is added to the tasks.
func (r *runner) taskName(l controlplane.Launch) string {
	r.mu.Lock()
	asked := r.asked[l.Reference] != nil
	name := l.Definition.Family + "-" + l.ID // a container has started it
	if l.Service != "" && !asked {
		r.numbers[l.Service]++
		name = fmt.Sprintf("%s-%d", l.Service, r.numbers[l.Service])
	}
	r.mu.Unlock()
	if asked {
		return l.Reference
	}
	r.tasks.Add(Task{Name: name, Definition: l.Definition, Service: l.Service})
	return name
}

// launched passes a task to the step that waits for it, or records it.
func (r *runner) launched(b cluster.TaskStart) {
	r.mu.Lock()
	waiting := r.asked[b.Reference]
	r.mu.Unlock()
	switch {
	case waiting != nil:
		waiting <- b
	case b.Err != nil:
		r.fail("start %s: %v", b.Name, b.Err)
	default:
		r.taskStarted(b.Name, b.Task)
	}
}

// run starts a task of the scenario.
func (r *runner) run(name string, t file.Task) (*cluster.Task, error) {
	revision, err := r.revision(t.Definition)
	if err != nil {
		return nil, err
	}
	in := shapes.RunTaskInput{
		Cluster: r.file.Cluster, TaskDefinition: revision, LaunchType: shapes.Fargate, ReferenceID: name,
		Tags: file.Tags(t.Tags), PropagateTags: t.PropagateTags,
	}
	for _, container := range slices.Sorted(maps.Keys(t.Commands)) {
		in.Overrides.Containers = append(in.Overrides.Containers, shapes.ContainerOverride{Name: container, Command: t.Commands[container]})
	}
	if r.plan.defs.Files[t.Definition].NetworkMode == "awsvpc" {
		in.NetworkConfiguration = file.Network()
	}
	if t.Service != "" {
		in.Group = "service:" + t.Service
	}
	started := make(chan cluster.TaskStart, 1)
	r.mu.Lock()
	r.asked[name] = started
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asked, name)
	}()
	if _, err := r.region.Plane().RunHere(r.region.Call(), t.Service, in); err != nil {
		return nil, err
	}
	b := <-started
	return b.Task, b.Err
}

// revision returns the revision registered for a file, once, until it is deployed.
func (r *runner) revision(name string) (string, error) {
	r.mu.Lock()
	known := r.revisions[name]
	r.mu.Unlock()
	if known != "" {
		return known, nil
	}
	return r.register(name)
}

// register registers the next revision of a file's family.
func (r *runner) register(name string) (string, error) {
	document, err := json.Marshal(r.plan.defs.Files[name])
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	out, err := r.region.Plane().RegisterTaskDefinition(r.region.Call(), shapes.RegisterTaskDefinitionInput{Document: document})
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revisions[name] = out.TaskDefinition.TaskDefinitionARN
	return r.revisions[name], nil
}

// update changes a service.
func (r *runner) update(name string, in shapes.ServiceInput) error {
	in.Service, in.Cluster = name, r.file.Cluster
	_, err := r.region.Plane().UpdateService(r.region.Call(), in)
	return err
}

// service describes a service.
func (r *runner) service(name string) (shapes.Service, error) {
	out, err := r.region.Plane().DescribeServices(r.region.Call(), shapes.DescribeServicesInput{Cluster: r.file.Cluster, Services: []string{name}})
	if err != nil {
		return shapes.Service{}, err
	}
	if len(out.Services) == 0 {
		return shapes.Service{}, fmt.Errorf("service %s does not exist", name)
	}
	return out.Services[0], nil
}

// SoFar describes the state of a service in a few words.
func SoFar(s shapes.Service) string {
	text := fmt.Sprintf("%d of %d running", s.RunningCount, s.DesiredCount)
	if s.PendingCount > 0 {
		text += fmt.Sprintf(", %d pending", s.PendingCount)
	}
	if len(s.Deployments) > 1 {
		text += fmt.Sprintf(", %d deployments", len(s.Deployments))
	}
	return text
}
