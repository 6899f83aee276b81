package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// FleetOptions are what a fleet is made of.
type FleetOptions struct {
	Cluster cluster.Options
	API     file.API
	// Files are the task definitions, by the names of their files.
	Files map[string]*taskdef.TaskDefinition
	// Expected is called for a task that no step starts, before it starts; the plane
	// waits for it.
	Expected func(name string, l controlplane.Launch)
	// Joined is called when such a task has started or failed to, before anything
	// else happens to it.
	Joined func(cluster.Begun)
	Log    hclog.Logger
}

// Fleet is a running region with one cluster.
type Fleet struct {
	region  *cluster.Region
	options FleetOptions

	mu        sync.Mutex
	revisions map[string]string             // ARNs by file
	asked     map[string]chan cluster.Begun // by the task's name, while Run waits
	started   map[string]int                // tasks of a service so far
}

// Open opens the region and the cluster of the tasks.
func Open(o FleetOptions) (*Fleet, error) {
	f := &Fleet{options: o, revisions: map[string]string{}, asked: map[string]chan cluster.Begun{}, started: map[string]int{}}
	var err error
	f.region, err = cluster.OpenRegion(cluster.RegionOptions{
		Cluster: o.Cluster, Throttle: o.API.Throttle, Lag: o.API.Lag.Record(), Name: f.name, Began: f.launched, SkipWarnings: true, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	if o.Cluster.Name == shapes.Default {
		return f, nil
	}
	_, err = f.region.Plane().CreateCluster(f.region.Call(), shapes.CreateClusterInput{
		ClusterName: o.Cluster.Name, CapacityProviders: []string{shapes.Fargate},
		DefaultCapacityProviderStrategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create cluster %s: %w", o.Cluster.Name, err), f.region.Close())
	}
	return f, nil
}

// Cluster returns where the tasks run.
func (f *Fleet) Cluster() *cluster.Cluster { return f.region.Cluster() }

// Region returns the fleet's ECS.
func (f *Fleet) Region() *cluster.Region { return f.region }

// Close kills all tasks and releases what they held.
func (f *Fleet) Close() error { return f.region.Close() }

// name returns the task's name in the scenario, or the next of its service.
func (f *Fleet) name(l controlplane.Launch) string {
	f.mu.Lock()
	asked := f.asked[l.Reference] != nil
	name := l.Definition.Family + "-" + l.ID // a container has started it
	if l.Service != "" && !asked {
		f.started[l.Service]++
		name = fmt.Sprintf("%s-%d", l.Service, f.started[l.Service])
	}
	f.mu.Unlock()
	if asked {
		return l.Reference
	}
	f.options.Expected(name, l)
	return name
}

// launched passes a task to the call that waits for it.
func (f *Fleet) launched(b cluster.Begun) {
	f.mu.Lock()
	waiting := f.asked[b.Reference]
	f.mu.Unlock()
	if waiting != nil {
		waiting <- b
		return
	}
	f.options.Joined(b)
}

// Run starts a task of the scenario.
func (f *Fleet) Run(name string, t file.Task) (*cluster.Task, error) {
	revision, err := f.revision(t.Definition)
	if err != nil {
		return nil, err
	}
	in := shapes.RunTaskInput{
		Cluster: f.options.Cluster.Name, TaskDefinition: revision, LaunchType: shapes.Fargate, ReferenceID: name,
		Tags: file.Tags(t.Tags), PropagateTags: t.PropagateTags,
	}
	for _, container := range slices.Sorted(maps.Keys(t.Commands)) {
		in.Overrides.Containers = append(in.Overrides.Containers, shapes.ContainerOverride{Name: container, Command: t.Commands[container]})
	}
	if f.options.Files[t.Definition].NetworkMode == "awsvpc" {
		in.NetworkConfiguration = file.Network()
	}
	if t.Service != "" {
		in.Group = "service:" + t.Service
	}
	started := make(chan cluster.Begun, 1)
	f.mu.Lock()
	f.asked[name] = started
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.asked, name)
	}()
	if _, err := f.region.Plane().RunHere(f.region.Call(), t.Service, in); err != nil {
		return nil, err
	}
	b := <-started
	return b.Task, b.Err
}

// revision returns the revision registered for a file, once, until it is deployed.
func (f *Fleet) revision(name string) (string, error) {
	f.mu.Lock()
	known := f.revisions[name]
	f.mu.Unlock()
	if known != "" {
		return known, nil
	}
	return f.register(name)
}

// register registers the next revision of a file's family.
func (f *Fleet) register(name string) (string, error) {
	document, err := json.Marshal(f.options.Files[name])
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	out, err := f.region.Plane().RegisterTaskDefinition(f.region.Call(), shapes.RegisterTaskDefinitionInput{Document: document})
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revisions[name] = out.TaskDefinition.TaskDefinitionARN
	return f.revisions[name], nil
}

// Stop asks a task to stop, as StopTask does.
func (f *Fleet) Stop(taskID string) error {
	_, err := f.region.Plane().StopTask(f.region.Call(), shapes.StopTaskInput{Cluster: f.options.Cluster.Name, Task: taskID})
	return err
}

// Create creates a service, which starts its tasks in the background.
func (f *Fleet) Create(name string, s file.Service) error {
	revision, err := f.revision(s.Definition)
	if err != nil {
		return err
	}
	_, err = f.region.Plane().CreateService(f.region.Call(), s.Input(name, f.options.Cluster.Name, revision))
	return err
}

// Scale sets a service's desired count.
func (f *Fleet) Scale(name string, count int) error {
	return f.update(shapes.ServiceInput{Service: name, DesiredCount: &count})
}

// Deploy starts a deployment of the file's next revision, or, without a file, of
// what the service runs already.
func (f *Fleet) Deploy(name, definition string) error {
	in := shapes.ServiceInput{Service: name, ForceNewDeployment: definition == ""}
	if definition != "" {
		revision, err := f.register(definition)
		if err != nil {
			return err
		}
		in.TaskDefinition = revision
	}
	return f.update(in)
}

func (f *Fleet) update(in shapes.ServiceInput) error {
	in.Cluster = f.options.Cluster.Name
	_, err := f.region.Plane().UpdateService(f.region.Call(), in)
	return err
}

// Delete deletes a service with its tasks.
func (f *Fleet) Delete(name string) error {
	_, err := f.region.Plane().DeleteService(f.region.Call(), shapes.DeleteServiceInput{Cluster: f.options.Cluster.Name, Service: name, Force: true})
	return err
}

// Service describes a service.
func (f *Fleet) Service(name string) (shapes.Service, error) {
	out, err := f.region.Plane().DescribeServices(f.region.Call(), shapes.DescribeServicesInput{Cluster: f.options.Cluster.Name, Services: []string{name}})
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
