package awstest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// World is a simulated ECS that a test acts on.
type World struct {
	*simulated.Simulator
	// Key is that of a user who may call everything.
	Key iam.Key

	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	tasks   map[string]taskState // by ID
}

// taskState is what the last version of a task shows.
type taskState struct {
	cluster      string
	ran, stopped bool
}

// OpenWorld makes a World. The error is about the subnet.
func OpenWorld(o ECSOptions) (*World, error) {
	w := &World{tasks: map[string]taskState{}}
	w.changed = sync.NewCond(&w.mu)
	observe := o.Observe
	o.Observe = func(task shapes.Task, at time.Time) {
		if observe != nil {
			observe(task, at)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		stopped := task.LastStatus == shapes.Stopped
		w.tasks[idOf(task.TaskARN)] = taskState{task.ClusterARN, stopped || !task.StartedAt.IsZero(), stopped}
		w.changed.Broadcast()
	}
	var err error
	if w.Simulator, err = simulated.Open(o); err != nil {
		return nil, err
	}
	w.Key = w.Identities.PutUser(iam.Admin("localecs",
		shapes.Account{Region: w.Region(), ID: cmp.Or(o.Account, simulated.DefaultAccount)}))
	return w, nil
}

// Close ends the World: nothing happens to a task any more.
func (w *World) Close() {
	w.Simulator.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.changed.Broadcast()
}

// TaskGroup is a number of equal tasks.
type TaskGroup struct {
	// Family is registered with one container, app, unless it exists.
	Family string
	Count  int
	// Cluster is created unless it exists; empty is "default".
	Cluster string
	Tags    map[string]string
	// StartedBy and Overrides are RunTask's.
	StartedBy string
	Overrides shapes.Overrides
}

// Run runs tasks, and waits until all of them are RUNNING or have been. It
// returns their ARNs, in the order of their creation.
func (w *World) Run(g TaskGroup) (arns []string, err error) {
	call := w.call()
	if err := w.prepare(call, g); err != nil {
		return nil, err
	}
	in := shapes.RunTaskInput{
		Cluster: g.Cluster, TaskDefinition: g.Family, StartedBy: g.StartedBy, Overrides: g.Overrides,
		LaunchType: shapes.Fargate,
		NetworkConfiguration: &shapes.NetworkConfiguration{
			AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
		},
	}
	for key, value := range g.Tags {
		in.Tags = append(in.Tags, shapes.Tag{Key: key, Value: value})
	}
	for remaining := g.Count; remaining > 0; remaining -= batch {
		n := min(remaining, batch)
		in.Count = &n
		out, err := w.Plane.RunTask(call, in)
		if err != nil {
			return arns, fmt.Errorf("run tasks of %q: %w", g.Family, err)
		}
		for _, t := range out.Tasks {
			arns = append(arns, t.TaskARN)
		}
	}
	return arns, w.await(arns, func(s taskState) bool { return s.ran })
}

// batch is how many tasks one RunTask starts.
const batch = 10

// prepare creates the cluster and the task definition of the group.
func (w *World) prepare(call shapes.Call, g TaskGroup) error {
	if _, err := w.Plane.CreateCluster(call, shapes.CreateClusterInput{ClusterName: g.Cluster}); err != nil {
		return fmt.Errorf("create cluster %q: %w", g.Cluster, err)
	}
	if _, err := w.Plane.DescribeTaskDefinition(call,
		shapes.TaskDefinitionInput{TaskDefinition: g.Family}); err == nil {
		return nil
	}
	err := w.Register(fmt.Sprintf(`{"family": %q, "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
		"containerDefinitions": [{"name": "app", "image": "app"}]}`, g.Family))
	if err != nil {
		return fmt.Errorf("register %q: %w", g.Family, err)
	}
	return nil
}

// Register registers a task definition, a document as of RegisterTaskDefinition.
func (w *World) Register(document string) error {
	_, err := w.Plane.RegisterTaskDefinition(w.call(), shapes.RegisterTaskDefinitionInput{Document: []byte(document)})
	return err
}

// Stop stops tasks, by ID or ARN, as StopTask does, and waits until they are
// STOPPED.
func (w *World) Stop(tasks ...string) error {
	for _, task := range tasks {
		w.mu.Lock()
		s := w.tasks[idOf(task)]
		w.mu.Unlock()
		if s.stopped {
			return fmt.Errorf("task %s: has stopped", task)
		}
		if _, err := w.Plane.StopTask(w.call(), shapes.StopTaskInput{Cluster: s.cluster, Task: task}); err != nil {
			return fmt.Errorf("stop task %s: %w", task, err)
		}
	}
	return w.await(tasks, func(s taskState) bool { return s.stopped })
}

// await waits until all tasks are as they have to be.
func (w *World) await(tasks []string, done func(taskState) bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, task := range tasks {
		for !done(w.tasks[idOf(task)]) {
			if w.closed {
				return errors.New("the simulated ECS is closed")
			}
			w.changed.Wait()
		}
	}
	return nil
}

func (w *World) call() shapes.Call {
	return shapes.Call{Now: time.Now(), Principal: w.Key.Principal.ARN}
}

func idOf(task string) string { return task[strings.LastIndex(task, "/")+1:] }
