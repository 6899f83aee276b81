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

// Simulator is an ECS without processes that a test acts on.
type Simulator struct {
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

// OpenSimulator starts a Simulator. The error is about the subnet.
func OpenSimulator(o ECSOptions) (*Simulator, error) {
	s := &Simulator{tasks: map[string]taskState{}}
	s.changed = sync.NewCond(&s.mu)
	observe := o.Observe
	o.Observe = func(task shapes.Task, at time.Time) {
		if observe != nil {
			observe(task, at)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		stopped := task.LastStatus == shapes.Stopped
		s.tasks[idOf(task.TaskARN)] = taskState{task.ClusterARN, stopped || !task.StartedAt.IsZero(), stopped}
		s.changed.Broadcast()
	}
	var err error
	if s.Simulator, err = simulated.Open(o); err != nil {
		return nil, err
	}
	s.Key = s.Identities.PutUser(iam.Admin("localecs",
		shapes.Account{Region: s.Region(), ID: cmp.Or(o.Account, simulated.DefaultAccount)}))
	return s, nil
}

// Close ends the Simulator: nothing happens to a task any more.
func (s *Simulator) Close() {
	s.Simulator.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
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
func (s *Simulator) Run(g TaskGroup) (arns []string, err error) {
	call := s.call()
	if err := s.prepare(call, g); err != nil {
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
		out, err := s.Plane.RunTask(call, in)
		if err != nil {
			return arns, fmt.Errorf("run tasks of %q: %w", g.Family, err)
		}
		for _, t := range out.Tasks {
			arns = append(arns, t.TaskARN)
		}
	}
	return arns, s.await(arns, func(state taskState) bool { return state.ran })
}

// batch is how many tasks one RunTask starts.
const batch = 10

// prepare creates the cluster and the task definition of the group.
func (s *Simulator) prepare(call shapes.Call, g TaskGroup) error {
	if _, err := s.Plane.CreateCluster(call, shapes.CreateClusterInput{ClusterName: g.Cluster}); err != nil {
		return fmt.Errorf("create cluster %q: %w", g.Cluster, err)
	}
	if _, err := s.Plane.DescribeTaskDefinition(call,
		shapes.TaskDefinitionInput{TaskDefinition: g.Family}); err == nil {
		return nil
	}
	err := s.Register(fmt.Sprintf(`{"family": %q, "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
		"cpu": "256", "memory": "512", "containerDefinitions": [{"name": "app", "image": "app"}]}`, g.Family))
	if err != nil {
		return fmt.Errorf("register %q: %w", g.Family, err)
	}
	return nil
}

// Register registers a task definition, a document as of RegisterTaskDefinition.
func (s *Simulator) Register(document string) error {
	_, err := s.Plane.RegisterTaskDefinition(s.call(), shapes.RegisterTaskDefinitionInput{Document: []byte(document)})
	return err
}

// Stop stops tasks, by ID or ARN, as StopTask does, and waits until they are
// STOPPED.
func (s *Simulator) Stop(tasks ...string) error {
	for _, task := range tasks {
		s.mu.Lock()
		state := s.tasks[idOf(task)]
		s.mu.Unlock()
		if state.stopped {
			return fmt.Errorf("task %s: has stopped", task)
		}
		if _, err := s.Plane.StopTask(s.call(), shapes.StopTaskInput{Cluster: state.cluster, Task: task}); err != nil {
			return fmt.Errorf("stop task %s: %w", task, err)
		}
	}
	return s.await(tasks, func(state taskState) bool { return state.stopped })
}

// await waits until all tasks are as they have to be.
func (s *Simulator) await(tasks []string, done func(taskState) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range tasks {
		for !done(s.tasks[idOf(task)]) {
			if s.closed {
				return errors.New("the simulated ECS is closed")
			}
			s.changed.Wait()
		}
	}
	return nil
}

func (s *Simulator) call() shapes.Call {
	return shapes.Call{Now: time.Now(), Principal: s.Key.Principal.ARN}
}

func idOf(task string) string { return task[strings.LastIndex(task, "/")+1:] }
