package controlplane_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// newAddingFixture registers a definition whose second container depends on the first, and adds the
// containers of AWS.
func newAddingFixture(t *testing.T, added controlplane.Added) *planeFixture {
	t.Helper()
	w := newPlaneFixture(t, func(o *controlplane.Options) { o.Added = added })
	w.register(`{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
	"memory": "512",
		"containerDefinitions": [{"name": "init", "image": "i", "essential": false},
			{"name": "app", "image": "a", "portMappings": [{"name": "http", "containerPort": 80}],
				"dependsOn": [{"containerName": "init", "condition": "SUCCESS"}]}]}`)
	return w
}

func addedContainers() controlplane.Added {
	return controlplane.Added{
		ServiceConnect: &taskdef.Container{
			Image: "proxy", HealthCheck: &taskdef.HealthCheck{Command: []string{"CMD", "check"}},
		},
		GuardDuty: &taskdef.Container{Image: "agent", Essential: new(false)},
	}
}

// create creates the service web, with Service Connect or without, and starts its tasks.
func (w *planeFixture) create(connect *shapes.ServiceConnect) error {
	_, err := w.CreateService(w.call(), input(func(in *shapes.ServiceInput) { in.ServiceConnect = connect }))
	w.ReconcileServices(w.now)
	return err
}

var (
	proxyName = regexp.MustCompile(`^ecs-service-connect-[0-9A-Z]{5}$`)
	agentName = regexp.MustCompile(`^aws-guardduty-agent-[0-9A-Z]{5}$`)
)

// edges returns a container's, its name first.
func edges(c taskdef.Container) []string {
	all := []string{c.Name}
	for _, d := range c.DependsOn {
		all = append(all, d.ContainerName+" "+d.Condition)
	}
	return all
}

func TestServiceConnectIsInEveryTaskOfItsService(t *testing.T) {
	t.Parallel()
	w := newAddingFixture(t, addedContainers())
	if err := w.create(&shapes.ServiceConnect{Enabled: true, Namespace: "shop"}); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, l := range w.launches {
		containers := l.Definition.ContainerDefinitions
		if len(containers) != 4 {
			t.Fatalf("containers %+v", containers)
		}
		proxy, agent := containers[2].Name, containers[3].Name
		if !proxyName.MatchString(proxy) {
			t.Errorf("proxy %q", proxy)
		}
		if !agentName.MatchString(agent) {
			t.Errorf("agent %q", agent)
		}
		names[proxy], names[agent] = true, true
		var got [][]string
		for _, c := range containers {
			got = append(got, edges(c))
			if l.ContainerARNs[c.Name] == "" {
				t.Errorf("%s has no ARN", c.Name)
			}
		}
		want := [][]string{{"init", proxy + " HEALTHY"}, {"app", "init SUCCESS", proxy + " HEALTHY"}, {proxy}, {agent}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("edges (-want +got):\n%s", d)
		}
	}
	if len(names) != 4 {
		t.Errorf("names %v, want two for each of two tasks", names)
	}
	out, err := w.DescribeTaskDefinition(w.call(), shapes.TaskDefinitionInput{TaskDefinition: "web"})
	if err != nil {
		t.Fatal(err)
	}
	var described [][]string
	for _, c := range out.TaskDefinition.ContainerDefinitions {
		described = append(described, edges(c))
	}
	if d := cmp.Diff([][]string{{"init"}, {"app", "init SUCCESS"}}, described); d != "" {
		t.Errorf("the registered definition (-want +got):\n%s", d)
	}
}

func TestTasksWithoutServiceConnectHaveNoProxy(t *testing.T) {
	t.Parallel()
	w := newAddingFixture(t, addedContainers())
	w.run(nil)
	if err := w.create(&shapes.ServiceConnect{}); err != nil {
		t.Fatal(err)
	}
	if len(w.launches) != 3 {
		t.Fatalf("%d tasks", len(w.launches))
	}
	for _, l := range w.launches {
		var got []string
		for _, c := range l.Definition.ContainerDefinitions {
			got = append(got, c.Name)
		}
		if len(got) != 3 || !agentName.MatchString(got[2]) {
			t.Errorf("containers %q, want those of the definition and GuardDuty's agent", got)
		}
	}
}

func TestAnotherServiceConnectIsADeployment(t *testing.T) {
	t.Parallel()
	w := newAddingFixture(t, addedContainers())
	on := &shapes.ServiceConnect{Enabled: true, Services: []shapes.ConnectService{{PortName: "http"}}}
	if err := w.create(on); err != nil {
		t.Fatal(err)
	}
	update := func(connect *shapes.ServiceConnect) []shapes.Deployment {
		t.Helper()
		out, err := w.UpdateService(w.call(), shapes.ServiceInput{Service: "web", ServiceConnect: connect})
		if err != nil {
			t.Fatal(err)
		}
		return out.Service.Deployments
	}
	same := update(nil)
	if d := cmp.Diff(on, same[0].ServiceConnect); d != "" || len(same) != 1 {
		t.Errorf("%d deployments, Service Connect -want +got:\n%s", len(same), d)
	}
	if got := update(on); len(got) != 1 {
		t.Errorf("%d deployments after the same again", len(got))
	}
	if got := update(&shapes.ServiceConnect{}); len(got) != 2 || got[0].ServiceConnect.Enabled {
		t.Errorf("deployments without it: %+v", got)
	}
}
