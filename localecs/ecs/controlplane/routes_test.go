package controlplane_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// reachedFixture returns a plane without a proxy of Service Connect, with a definition that names a port.
func reachedFixture(t *testing.T) (w *planeFixture, routes *[]shapes.Route) {
	t.Helper()
	routes = new([]shapes.Route)
	w = newPlaneFixture(t, func(o *controlplane.Options) {
		o.Route = func(r []shapes.Route) { *routes = r }
		o.CloudMap = map[string]string{"srv-a": "API.shop.internal", "ns-a": "shop.internal"}
	})
	w.register(`{"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
		"memory": "512", "containerDefinitions": [{"name": "app", "image": "a",
			"portMappings": [{"name": "http", "containerPort": 8080}]}]}`)
	return w, routes
}

// reached decodes members of a request into one for the service web.
func reached(t *testing.T, members string) shapes.ServiceInput {
	t.Helper()
	return input(func(in *shapes.ServiceInput) {
		if err := json.Unmarshal([]byte(members), in); err != nil {
			t.Fatal(err)
		}
	})
}

func TestServiceConnectNamesLeadToTasksThatServe(t *testing.T) {
	t.Parallel()
	w, routes := reachedFixture(t)
	_, err := w.CreateService(w.call(), reached(t, `{"desiredCount": 1, "serviceConnectConfiguration": {"enabled": true,
		"namespace": "arn:aws:servicediscovery:us-east-1:123456789012:namespace/ns-a", "services": [
			{"portName": "http", "discoveryName": "api", "clientAliases": [
				{"port": 80, "dnsName": "API"}, {"port": 81}]},
			{"portName": "http", "clientAliases": [{"port": 82}]}, {"portName": "http"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, targets ...string) {
		t.Helper()
		w.ReconcileServices(w.now)
		testkit.Equal(t, "routes "+when, *routes, []shapes.Route{
			{Name: "api", Port: 80, Targets: targets}, {Name: "api.shop.internal", Port: 81, Targets: targets},
			{Name: "http.shop.internal", Port: 82, Targets: targets},
		})
	}
	want("before a task runs")
	id := slices.Collect(maps.Keys(w.launches))[0]
	w.start(id)
	want("with a task", "10.42.0.4:8080")
	if _, err := w.StopTask(w.call(), shapes.StopTaskInput{Task: id}); err != nil {
		t.Fatal(err)
	}
	want("while the task stops")
	off := shapes.ServiceInput{Service: "web", ServiceConnect: &shapes.ServiceConnect{}}
	if _, err := w.UpdateService(w.call(), off); err != nil {
		t.Fatal(err)
	}
	w.ReconcileServices(w.now)
	testkit.Equal(t, "routes without Service Connect", *routes, nil)
}

func TestNamespaceOfServiceConnect(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		`"namespace": "Shop",`: "http.shop", "": "http.default",
		`"namespace": "arn:aws:servicediscovery:us-east-1:123456789012:namespace/ns-b",`: "http.default",
	} {
		w, routes := reachedFixture(t)
		_, err := w.CreateService(w.call(), reached(t, `{"serviceConnectConfiguration": {"enabled": true, `+namespace+
			`"services": [{"portName": "http", "clientAliases": [{"port": 80}]}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		w.ReconcileServices(w.now)
		testkit.Equal(t, "routes in "+namespace, *routes, []shapes.Route{{Name: want, Port: 80}})
	}
}

func TestTasksAreRegisteredInCloudMap(t *testing.T) {
	t.Parallel()
	w, _ := reachedFixture(t)
	const registries = `[{"registryArn": "arn:aws:servicediscovery:us-east-1:123456789012:service/srv-a"}]`
	out, err := w.CreateService(w.call(), reached(t, `{"desiredCount": 1, "serviceRegistries": `+registries+`}`))
	if err != nil {
		t.Fatal(err)
	}
	w.ReconcileServices(w.now)
	for _, l := range w.launches {
		testkit.Equal(t, "names", l.Names, []string{"api.shop.internal"})
	}
	shown, err := json.Marshal(out.Service.ServiceRegistries)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "described", string(shown),
		`[{"registryArn":"arn:aws:servicediscovery:us-east-1:123456789012:service/srv-a"}]`)
	for _, c := range []struct {
		in          shapes.ServiceInput
		deployments int
		registries  int
	}{
		{shapes.ServiceInput{Service: "web"}, 1, 1},
		{shapes.ServiceInput{Service: "web", ServiceRegistries: []shapes.ServiceRegistry{}}, 2, 0},
	} {
		out, err := w.UpdateService(w.call(), c.in)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, "deployments", len(out.Service.Deployments), c.deployments)
		testkit.Equal(t, "registries", len(out.Service.ServiceRegistries), c.registries)
	}
}

func TestNamesThatLeadNowhereAreRefused(t *testing.T) {
	t.Parallel()
	w, _ := reachedFixture(t)
	const one = `{"registryArn": "arn:aws:servicediscovery:us-east-1:123456789012:service/srv-a"}`
	connect := func(service string) string {
		return `{"serviceConnectConfiguration": {"enabled": true, "services": [` + service + `]}}`
	}
	for members, want := range map[string]string{
		`{"serviceRegistries": [` + one + `, ` + one + `]}`: "serviceRegistries can have at most 1 items.",
		`{"serviceRegistries": [{}]}`:                       "registryArn must be an ARN of AWS Cloud Map, not ''.",
		`{"serviceRegistries": [{"registryArn": "arn:a", "containerName": "b"}]}`: "The container b does not exist " +
			"in the task definition.",
		connect(`{"portName": "grpc"}`): "portName 'grpc' does not exist in the portMappings of the task definition.",
		connect(`{}`):                   "portName '' does not exist in the portMappings of the task definition.",
		connect(`{"portName": "http", "clientAliases": [{"dnsName": "api"}]}`): "The port of a client alias must be " +
			"between 1 and 65535.",
	} {
		_, err := w.CreateService(w.call(), reached(t, members))
		testkit.ErrorContains(t, err, "InvalidParameterException: "+want)
	}
}
