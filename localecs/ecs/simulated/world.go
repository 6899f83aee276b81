package simulated

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Options describe a World. The zero Options are a World in which nothing takes
// time.
type Options struct {
	// Region is us-east-1 and Account 123456789012 where they are empty.
	Region, Account string
	// Subnet is where tasks have addresses, CIDR; empty is DefaultSubnet.
	Subnet string
	// Timing is how long the steps of a task take.
	Timing Timing
	// TimeScale divides every duration of task definitions, for tests that cannot
	// wait; 0 means 1.
	TimeScale float64
	// AtOnce stops all containers of a task at once instead of in reverse
	// dependsOn order.
	AtOnce bool
	// Roles are the account's. Tasks may have others, or none: nothing is run
	// with them.
	Roles []iam.Role
	// Throttle applies AWS's token buckets; Lag is the delay of answers.
	Throttle bool
	Lag      controlplane.Lag
	// Observe receives each new version of a task. It must neither block nor call
	// the World. It may be nil.
	Observe func(task shapes.Task, at time.Time)
	// Log may be nil.
	Log hclog.Logger
}

// World is a running ECS without processes, with the empty cluster "default".
type World struct {
	// Plane has the calls of the API as methods.
	Plane *controlplane.Plane
	// Key is that of a user who may call everything.
	Key iam.Key
	// Identities are the account's roles, users and keys.
	Identities *iam.Store

	region   string
	launcher *launcher
	ecs, aws http.Handler
}

var errClosed = errors.New("the simulated ECS is closed")

// Open makes a World. The error is about the subnet.
func Open(o Options) (*World, error) {
	o.Region, o.Account = cmp.Or(o.Region, "us-east-1"), cmp.Or(o.Account, "123456789012")
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	addresses, err := newAddresses(o.Subnet, o.Region)
	if err != nil {
		return nil, err
	}
	options := LifeOptions{Timing: o.Timing, Scheduler: scheduler.Options{TimeScale: o.TimeScale}}
	if o.AtOnce {
		options.Scheduler.StopOrder = scheduler.AllAtOnce
	}
	account := shapes.Account{Region: o.Region, ID: o.Account}
	w := &World{region: o.Region, Identities: iam.NewStore(), launcher: newLauncher(options, addresses, o.Log)}
	w.Key = w.Identities.PutUser(iam.Admin("localecs", account))
	for _, r := range o.Roles {
		w.Identities.PutRole(r)
	}
	w.Plane = controlplane.New(controlplane.Options{
		Account: account, Launcher: w.launcher, Protections: metadata.NewProtections(), Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe,
	})
	w.Plane.Start()
	w.ecs = w.Plane.Handler(w.Identities, o.Log)
	w.aws = iam.New(iam.Options{Store: w.Identities, Region: o.Region})
	return w, nil
}

// Region is where the World is.
func (w *World) Region() string { return w.region }

// ServeHTTP is the ECS API, and STS and IAM, as tasks and users find them.
func (w *World) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	if controlplane.Wanted(req) {
		w.ecs.ServeHTTP(res, req)
		return
	}
	w.aws.ServeHTTP(res, req)
}

// Close ends the World: nothing happens to a task any more.
func (w *World) Close() {
	w.Plane.Close()
	w.launcher.close()
}

// Group is a number of equal tasks.
type Group struct {
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
func (w *World) Run(g Group) (arns []string, err error) {
	call := w.call()
	if err := w.prepare(call, g); err != nil {
		return nil, err
	}
	in := shapes.RunTaskInput{
		Cluster: g.Cluster, TaskDefinition: g.Family, StartedBy: g.StartedBy, Overrides: g.Overrides, LaunchType: shapes.Fargate,
		NetworkConfiguration: &shapes.NetworkConfiguration{AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}}},
	}
	for key, value := range g.Tags {
		in.Tags = append(in.Tags, shapes.Tag{Key: key, Value: value})
	}
	for left := g.Count; left > 0; left -= batch {
		n := min(left, batch)
		in.Count = &n
		out, err := w.Plane.RunTask(call, in)
		if err != nil {
			return arns, fmt.Errorf("run tasks of %q: %w", g.Family, err)
		}
		for _, t := range out.Tasks {
			arns = append(arns, t.TaskARN)
		}
	}
	return arns, w.await(shapes.Running, arns)
}

// batch is how many tasks one RunTask starts.
const batch = 10

// prepare creates the cluster and the task definition of the group.
func (w *World) prepare(call shapes.Call, g Group) error {
	if _, err := w.Plane.CreateCluster(call, shapes.CreateClusterInput{ClusterName: g.Cluster}); err != nil {
		return fmt.Errorf("create cluster %q: %w", g.Cluster, err)
	}
	if _, err := w.Plane.DescribeTaskDefinition(call, shapes.TaskDefinitionInput{TaskDefinition: g.Family}); err == nil {
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
		cluster, err := w.cluster(task)
		if err != nil {
			return err
		}
		if _, err := w.Plane.StopTask(w.call(), shapes.StopTaskInput{Cluster: cluster, Task: task}); err != nil {
			return fmt.Errorf("stop task %s: %w", task, err)
		}
	}
	return w.await(shapes.Stopped, tasks)
}

// Kill ends all containers of tasks, by ID or ARN, as a KILL would: with code 137
// and no orderly stop. It waits until the tasks are STOPPED; those that are
// already stay as they are.
func (w *World) Kill(tasks ...string) error {
	err := w.launcher.ask(func(now time.Time) error {
		for _, task := range tasks {
			if e := w.launcher.tasks[idOf(task)]; e != nil {
				w.launcher.report(e, e.task.Kill(now))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.await(shapes.Stopped, tasks)
}

// Exit ends a task's container by itself, with an exit code. With an essential
// one the task stops; where nothing takes time it is STOPPED when Exit returns.
func (w *World) Exit(task, container string, code int) error {
	return w.happen(task, func(e *entry, now time.Time) ([]Moment, error) {
		return e.task.Exit(container, code, now)
	})
}

// SetHealth makes a container's health checks fail or succeed from the next one
// on: the status follows as the definition's interval and retries say.
func (w *World) SetHealth(task, container string, healthy bool) error {
	return w.happen(task, func(e *entry, _ time.Time) ([]Moment, error) {
		return nil, e.task.SetHealth(container, healthy)
	})
}

// happen changes a task that is not STOPPED yet.
func (w *World) happen(task string, do func(e *entry, now time.Time) ([]Moment, error)) error {
	err := w.launcher.ask(func(now time.Time) error {
		e := w.launcher.tasks[idOf(task)]
		if e == nil {
			return errors.New("there is no such task any more")
		}
		moments, err := do(e, now)
		w.launcher.report(e, moments)
		return err
	})
	if err != nil {
		return fmt.Errorf("task %s: %w", task, err)
	}
	return nil
}

// cluster is the name of a task's cluster.
func (w *World) cluster(task string) (name string, err error) {
	return name, w.happen(task, func(e *entry, _ time.Time) ([]Moment, error) {
		name = e.launch.Cluster
		return nil, nil
	})
}

// await waits until all tasks are STOPPED, or have been RUNNING.
func (w *World) await(status string, tasks []string) error {
	var waits []chan struct{}
	err := w.launcher.ask(func(time.Time) error {
		for _, task := range tasks {
			switch e := w.launcher.tasks[idOf(task)]; {
			case e == nil:
			case status == shapes.Running:
				waits = append(waits, e.ran)
			default:
				waits = append(waits, e.gone)
			}
		}
		return nil
	})
	for _, done := range waits {
		select {
		case <-done:
		case <-w.launcher.done:
			return errClosed
		}
	}
	return err
}

func (w *World) call() shapes.Call {
	return shapes.Call{Now: time.Now(), Principal: w.Key.Principal.ARN}
}

func idOf(task string) string { return task[strings.LastIndex(task, "/")+1:] }
