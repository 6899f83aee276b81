package simulated_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// fixture is an awstest.Simulator whose versions of tasks are seen.
type fixture struct {
	*awstest.Simulator
	t     *testing.T
	begin time.Time

	mu     sync.Mutex
	events []string
	counts map[string]int // by last and desired status
	most   int            // tasks that were to run at once
	now    map[string]bool
}

func open(t *testing.T, o simulated.Options) *fixture {
	t.Helper()
	w := &fixture{t: t, begin: time.Now(), counts: map[string]int{}, now: map[string]bool{}}
	o.Observe = w.observe
	var err error
	if w.Simulator, err = awstest.OpenSimulator(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func (w *fixture) observe(task shapes.Task, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := task.LastStatus + "/" + task.DesiredStatus
	w.events = append(w.events,
		fmt.Sprintf("%g: %d %s %s", at.Sub(w.begin).Seconds(), task.Version, status, task.Attachments[0].Status))
	w.counts[status]++
	if task.DesiredStatus == shapes.Running {
		w.now[task.TaskARN] = true
	} else {
		delete(w.now, task.TaskARN)
	}
	w.most = max(w.most, len(w.now))
}

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) call() shapes.Call { return shapes.Call{Now: time.Now(), Principal: "me"} }

func (w *fixture) describe(task string) shapes.Task {
	w.t.Helper()
	out, err := w.Plane.DescribeTasks(w.call(),
		shapes.DescribeTasksInput{Tasks: []string{task}, Include: []string{"TAGS"}})
	w.must(err)
	if len(out.Tasks) != 1 {
		w.t.Fatalf("%+v", out)
	}
	return out.Tasks[0]
}

// slow returns a Timing with distinguishable steps.
func slow() simulated.Timing {
	return simulated.Timing{
		Attach: 1 * time.Second, Pull: 2 * time.Second, Start: 4 * time.Second, Stop: 8 * time.Second,
		Detach: 16 * time.Second,
	}
}

func TestTasksGoThroughThePublishedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, simulated.Options{Timing: slow()})
		tasks, err := w.Run(awstest.TaskGroup{Family: "web", Count: 1, Tags: map[string]string{"a": "b"},
			StartedBy: "me"})
		w.must(err)
		running := w.describe(tasks[0])
		c := running.Containers[0]
		testkit.Equal(t, "NetworkInterfaces[0].IPv4", c.NetworkInterfaces[0].IPv4, "10.42.0.4")
		testkit.Equal(t, "len(c.RuntimeID)", len(c.RuntimeID), 43)
		testkit.Equal(t, "len(c.ImageDigest)", len(c.ImageDigest), 71)
		testkit.Equal(t, "StartedBy", running.StartedBy, "me")
		testkit.Equal(t, "Attachments[0].Details[3].Value", running.Attachments[0].Details[3].Value,
			"ip-10-42-0-4.ec2.internal")
		if !cmp.Equal(running.Tags, []shapes.Tag{{Key: "a", Value: "b"}}) {
			t.Errorf("%+v", running)
		}
		w.must(w.Stop(tasks[0]))
		want := []string{
			"0: 1 PROVISIONING/RUNNING PRECREATED", "1: 2 PENDING/RUNNING ATTACHED", "7: 3 RUNNING/RUNNING ATTACHED",
			"7: 4 RUNNING/STOPPED ATTACHED", "15: 5 DEPROVISIONING/STOPPED DETACHING", "31: 6 STOPPED/STOPPED DELETED",
		}
		if d := cmp.Diff(want, w.events); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func TestTasksStop(t *testing.T) {
	t.Parallel()
	w := open(t, simulated.Options{})
	tasks, err := w.Run(awstest.TaskGroup{Family: "web", Cluster: "other", Count: 2})
	w.must(err)
	w.must(w.Stop(tasks[0], tasks[1][strings.LastIndex(tasks[1], "/")+1:]))
	out, err := w.Plane.DescribeTasks(w.call(), shapes.DescribeTasksInput{Cluster: "other", Tasks: tasks})
	w.must(err)
	for _, task := range out.Tasks {
		if got := fmt.Sprintf("%s %s %d", task.LastStatus, task.StopCode,
			*task.Containers[0].ExitCode); got != "STOPPED UserInitiated 0" {
			t.Errorf("got %q", got)
		}
	}
	if err, want := w.Stop(tasks[0]), "task "+tasks[0]+": has stopped"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTaskWithoutAFreeAddressFails(t *testing.T) {
	t.Parallel()
	w := open(t, simulated.Options{Subnet: "10.1.0.0/29"})
	tasks, err := w.Run(awstest.TaskGroup{Family: "web", Count: 4})
	w.must(err)
	if last := w.describe(tasks[3]); last.StopCode != "TaskFailedToStart" ||
		last.StoppedReason != "ResourceInitializationError: no free address in the subnet: stop a task or take a "+
			"larger subnet" {
		t.Errorf("%s %s", last.StopCode, last.StoppedReason)
	}
	w.must(w.Stop(tasks[0]))
	environment := shapes.Overrides{
		Containers: []shapes.ContainerOverride{
			{Name: "app", Environment: []shapes.EnvironmentVariable{{Name: simulated.Variable, Value: "exit=x"}}},
		},
	}
	wrong, err := w.Run(awstest.TaskGroup{Family: "web", Count: 1, Overrides: environment})
	w.must(err)
	if task := w.describe(wrong[0]); task.StoppedReason != `ResourceInitializationError: container app: `+
		`LOCALECS_SIMULATE: "exit=x": want an exit code, 0 to 255` {
		t.Errorf("%s", task.StoppedReason)
	}
	again, err := w.Run(awstest.TaskGroup{Family: "web", Count: 1})
	w.must(err)
	if ip := w.describe(again[0]).Containers[0].NetworkInterfaces[0].IPv4; ip != "10.1.0.4" {
		t.Errorf("the address that was given back is not taken: %s", ip)
	}
	if _, err := awstest.OpenSimulator(simulated.Options{Subnet: "fd00::/64"}); err == nil {
		t.Error("a subnet of IPv6 was taken")
	}
}

// probed has a health check that decides after two probes.
const probed = `{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
	"memory": "512", "containerDefinitions": [
	{"name": "app", "image": "app", "healthCheck": {"command": ["CMD", "x"], "interval": 5, "retries": 2}}]}`

// service makes a service of simulated tasks.
func (w *fixture) service(desired int, change func(*shapes.ServiceInput)) {
	w.t.Helper()
	in := shapes.ServiceInput{
		ServiceName: "web", TaskDefinition: "web", DesiredCount: &desired, LaunchType: shapes.Fargate,
		NetworkConfiguration: &shapes.NetworkConfiguration{
			AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
		},
	}
	if change != nil {
		change(&in)
	}
	_, err := w.Plane.CreateService(w.call(), in)
	w.must(err)
}

// steady waits until the service has one deployment, which is complete.
func (w *fixture) steady(within time.Duration) shapes.Service {
	w.t.Helper()
	for end := time.Now().Add(within); ; <-time.After(time.Second) {
		out, err := w.Plane.DescribeServices(w.call(), shapes.DescribeServicesInput{Services: []string{"web"}})
		w.must(err)
		s := out.Services[0]
		switch {
		case len(s.Deployments) == 1 && s.Deployments[0].RolloutState == "COMPLETED" &&
			s.RunningCount == s.DesiredCount:
			return s
		case time.Now().After(end):
			w.t.Fatalf("not steady: %d of %d, %+v", s.RunningCount, s.DesiredCount, s.Deployments)
		}
	}
}

func TestServiceOfAThousandTasksIsDeployed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, simulated.Options{Timing: slow()})
		w.must(w.Register(probed))
		upper, lower := 125, 80
		w.service(1000, func(in *shapes.ServiceInput) {
			in.DeploymentConfiguration = &shapes.DeploymentConfiguration{
				MaximumPercent: &upper, MinimumHealthyPercent: &lower,
			}
		})
		w.steady(time.Minute)
		_, err := w.Plane.UpdateService(w.call(), shapes.ServiceInput{Service: "web", ForceNewDeployment: true})
		w.must(err)
		s := w.steady(10 * time.Minute)
		<-time.After(time.Minute) // the last of the old ones are stopping
		w.mu.Lock()
		defer w.mu.Unlock()
		testkit.Equal(t, "RunningCount", s.RunningCount, 1000)
		testkit.Equal(t, `counts["STOPPED/STOPPED"]`, w.counts["STOPPED/STOPPED"], 1000)
		testkit.Equal(t, "len(w.now)", len(w.now), 1000)
		if w.most > 1250 || w.most < 1200 {
			t.Errorf("%d run, %d stopped, %d to run, %d at once", s.RunningCount, w.counts["STOPPED/STOPPED"],
				len(w.now), w.most)
		}
	})
}

func TestUnhealthyTaskIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, simulated.Options{})
		w.must(w.Register(strings.Replace(probed, `"image"`,
			`"environment": [{"name": "LOCALECS_SIMULATE", "value": "unhealthy=1m"}], "image"`, 1)))
		w.service(1, nil)
		w.steady(time.Minute)
		tasks, err := w.Plane.ListTasks(w.call(), shapes.ListTasksInput{ServiceName: "web"})
		w.must(err)
		sick := tasks.TaskARNs[0]
		<-time.After(90 * time.Second)
		if task := w.describe(sick); task.LastStatus != shapes.Stopped ||
			task.StoppedReason != "Task failed container health checks" {
			t.Errorf("%s %s", task.LastStatus, task.StoppedReason)
		}
		w.steady(0)
	})
}

func TestClosedSimulatorReturnsAnError(t *testing.T) {
	t.Parallel()
	w, err := awstest.OpenSimulator(simulated.Options{Timing: slow()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := w.Run(awstest.TaskGroup{Family: "web", Count: 1})
		ended <- err
	}()
	w.Close()
	if err := <-ended; err == nil || err.Error() != "the simulated ECS is closed" {
		t.Errorf("got %v", err)
	}
}
