package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// ecsTasks starts the tasks and services of a run in the simulated ECS.
type ecsTasks struct {
	plan     *Plan
	file     *file.Scenario // the plan's, with what Options replace
	tasks    *TaskSet
	progress *progress
	region   *cluster.Region
	cluster  *cluster.Cluster // the region's

	// mu guards the ARNs of revisions by file, the steps that wait for a task by its name, and of each service
	// how many tasks it has started so far and the ID of the deployment that the steps want.
	mu          sync.Mutex
	revisions   map[string]string
	asked       map[string]chan cluster.TaskStart
	numbers     map[string]int
	deployments map[string]string
}

// ClusterOptions returns what a file says about the cluster, but for what it names on this machine.
func ClusterOptions(f *file.Scenario) cluster.Options {
	return cluster.Options{
		Name: f.Cluster, Region: f.Region, Account: f.Account, Subnet: f.Subnet, AtOnce: f.StopOrder == file.StopAtOnce,
		GatePeriod: f.GatePeriod, TimeScale: f.TimeScale, HealthyAfter: f.HealthyAfter, Roles: f.IdentityRoles(),
		Added: f.Added(), CloudMap: f.CloudMap,
	}
}

// open opens the region that tasks run in, with one cluster.
func (e *ecsTasks) open(o Options) error {
	f := e.file
	var output func(task, container string, line []byte)
	if e.plan.alone != nil {
		output = e.progress.output
	}
	options := ClusterOptions(f)
	options.Network, options.Docker, options.Dir = e.plan.network, o.Docker, o.Dir
	options.Images, options.Roles, options.Secrets = e.plan.images, e.plan.roles, e.plan.secrets
	options.EnvironmentFiles = e.plan.environmentFiles
	options.Observe, options.Output, options.Log = e.progress.clusterChanged, output, o.Log
	var err error
	e.region, err = cluster.OpenRegion(cluster.RegionOptions{Cluster: options,
		Throttle: f.API.Throttle, Lag: f.API.Lag, Name: e.taskName, Started: e.launched, SkipWarnings: true, Log: o.Log,
	})
	if err != nil {
		return err
	}
	e.cluster = e.region.Cluster()
	if f.Cluster == shapes.Default {
		return nil
	}
	_, err = e.region.Plane().CreateCluster(e.region.Call(), shapes.CreateClusterInput{
		ClusterName: f.Cluster, CapacityProviders: []string{shapes.Fargate},
		DefaultCapacityProviderStrategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
	})
	if err != nil {
		return errors.Join(fmt.Errorf("create cluster %s: %w", f.Cluster, err), e.region.Close())
	}
	return nil
}

// taskName returns a new task's name in the scenario, or the next of its service. A task
// that no step starts is added to the tasks.
func (e *ecsTasks) taskName(l controlplane.Launch) string {
	e.mu.Lock()
	asked := e.asked[l.Reference] != nil
	name := l.Definition.Family + "-" + l.ID // a container has started it
	if l.Service != "" && !asked {
		e.numbers[l.Service]++
		name = fmt.Sprintf("%s-%d", l.Service, e.numbers[l.Service])
	}
	e.mu.Unlock()
	if asked {
		return l.Reference
	}
	e.tasks.Add(Task{Name: name, Definition: l.Definition, Service: l.Service})
	return name
}

// launched passes a task to the step that waits for it, or records it.
func (e *ecsTasks) launched(b cluster.TaskStart) {
	e.mu.Lock()
	waiting := e.asked[b.Launch.Reference]
	e.mu.Unlock()
	switch {
	case waiting != nil:
		waiting <- b
	case b.Err != nil:
		e.progress.fail("start %s: %v", b.Name, b.Err)
	default:
		e.taskStarted(b.Name, b.Task)
	}
}

func (e *ecsTasks) run(name string, t file.Task) (*cluster.Task, error) {
	revision, err := e.revision(t.Definition)
	if err != nil {
		return nil, err
	}
	in := shapes.RunTaskInput{
		Cluster: e.file.Cluster, TaskDefinition: revision, LaunchType: shapes.Fargate, ReferenceID: name,
		Tags: file.Tags(t.Tags), PropagateTags: t.PropagateTags,
	}
	for _, container := range slices.Sorted(maps.Keys(t.Commands)) {
		in.Overrides.Containers = append(in.Overrides.Containers,
			shapes.ContainerOverride{Name: container, Command: t.Commands[container]})
	}
	if e.plan.defs.Files[t.Definition].NetworkMode == "awsvpc" {
		in.NetworkConfiguration = file.Network()
	}
	if t.Service != "" {
		in.Group = "service:" + t.Service
	}
	started := make(chan cluster.TaskStart, 1)
	e.mu.Lock()
	e.asked[name] = started
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.asked, name)
	}()
	if _, err := e.region.Plane().RunUnthrottled(e.region.Call(), t.Service, in); err != nil {
		return nil, err
	}
	b := <-started
	return b.Task, b.Err
}

// revision returns the revision registered for a file, once, until it is deployed.
func (e *ecsTasks) revision(name string) (string, error) {
	e.mu.Lock()
	known := e.revisions[name]
	e.mu.Unlock()
	if known != "" {
		return known, nil
	}
	return e.register(name)
}

// register registers the next revision of a file's family.
func (e *ecsTasks) register(name string) (string, error) {
	document, err := json.Marshal(e.plan.defs.Files[name])
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	out, err := e.region.Plane().RegisterTaskDefinition(e.region.Call(),
		shapes.RegisterTaskDefinitionInput{Document: document})
	if err != nil {
		return "", fmt.Errorf("register %s: %w", name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revisions[name] = out.TaskDefinition.TaskDefinitionARN
	return e.revisions[name], nil
}

func (e *ecsTasks) update(name string, in shapes.ServiceInput) error {
	in.Service, in.Cluster = name, e.file.Cluster
	return e.deployed(e.region.Plane().UpdateService(e.region.Call(), in))
}

// deployed records which deployment of a service the steps want.
func (e *ecsTasks) deployed(out shapes.ServiceOutput, err error) error {
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deployments[out.Service.ServiceName] = out.Service.Deployments[0].ID
	return nil
}

// rolledBack returns an error if a service has another deployment than the steps want.
func (e *ecsTasks) rolledBack(s shapes.Service) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := e.deployments[s.ServiceName]
	if s.Status != shapes.Active || s.Deployments[0].ID == wanted {
		return nil
	}
	return fmt.Errorf("deployment %s failed and was rolled back to %s", wanted, s.Deployments[0].ID)
}

func (e *ecsTasks) service(name string) (shapes.Service, error) {
	out, err := e.region.Plane().DescribeServices(e.region.Call(),
		shapes.DescribeServicesInput{Cluster: e.file.Cluster, Services: []string{name}})
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

func (e *ecsTasks) start(names []string) error {
	for _, name := range names {
		if _, service := e.file.Services[name]; service {
			if err := e.create(name); err != nil {
				return err
			}
			continue
		}
		task, err := e.run(name, e.file.Tasks[name])
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		e.taskStarted(name, task)
	}
	return nil
}

func (e *ecsTasks) taskStarted(name string, task *cluster.Task) {
	e.tasks.Begin(name, task)
	e.progress.record.begin(e.tasks.Task(name))
	text := "task " + task.ID() + " at " + task.IP()
	if e.plan.alone != nil {
		text += fmt.Sprintf(", %s.%s.local", e.tasks.Task(name).Definition.Family, e.file.Cluster)
	}
	e.progress.emit(Event{Kind: KindTask, Task: name, TaskID: task.ID(), Address: task.IP(), Text: text})
}

// whyEnded returns ECS's reason for a task's end, then the first container that failed,
// with its last line.
func (e *ecsTasks) whyEnded(t Task) string {
	v := t.View()
	why := brief(v.StopCode + ": " + v.StoppedReason)
	first := FirstFailed(v)
	if first == nil {
		return why
	}
	return fmt.Sprintf("%s; %s exited with %d: %s", why, first.Name, *first.ExitCode, e.lastLine(t, first.Name))
}

// lastLine returns the last line of a container's log.
func (e *ecsTasks) lastLine(t Task, container string) string {
	return cluster.LastLine(e.cluster.LogFile(t.Name, container))
}
