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

// Options are what a fleet is made of.
type FleetOptions struct {
	Cluster cluster.Options
	API     file.API
	// Files are the task definitions, by the names of their files.
	Files map[string]*taskdef.TaskDefinition
	// Expected is told of tasks that no step starts, before they begin; the plane
	// waits for it.
	Expected func(name string, l controlplane.Launch)
	// Joined gets them when they have begun, or why it could not be,
	// before anything else happens to it.
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

// Open makes the region, with the cluster that tasks are in.
func Open(o FleetOptions) (*Fleet, error) {
	f := &Fleet{options: o, revisions: map[string]string{}, asked: map[string]chan cluster.Begun{}, started: map[string]int{}}
	var err error
	f.region, err = cluster.OpenRegion(cluster.RegionOptions{
		Cluster: o.Cluster, Throttle: o.API.Throttle, Lag: o.API.Lag.Record(), Name: f.name, Began: f.began, SkipWarnings: true, Log: o.Log,
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

// Cluster is where the tasks run.
func (f *Fleet) Cluster() *cluster.Cluster { return f.region.Cluster() }

// Region is the fleet's ECS.
func (f *Fleet) Region() *cluster.Region { return f.region }

// Close kills everything and gives it back.
func (f *Fleet) Close() error { return f.region.Close() }

// name is the one in the scenario, or the next of a service.
func (f *Fleet) name(l controlplane.Launch) string {
	f.mu.Lock()
	asked := f.asked[l.Reference] != nil
	name := l.Definition.Family + "-" + l.ID // of one that a container has started
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

// began hands a task to who waits for it.
func (f *Fleet) began(b cluster.Begun) {
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
	begun := make(chan cluster.Begun, 1)
	f.mu.Lock()
	f.asked[name] = begun
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.asked, name)
	}()
	if _, err := f.region.Plane().RunHere(f.region.Call(), t.Service, in); err != nil {
		return nil, err
	}
	b := <-begun
	return b.Task, b.Err
}

// revision is what is registered of a file: once, until it is deployed.
func (f *Fleet) revision(name string) (string, error) {
	f.mu.Lock()
	known := f.revisions[name]
	f.mu.Unlock()
	if known != "" {
		return known, nil
	}
	return f.register(name)
}

// register makes the next revision of a file's family.
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
