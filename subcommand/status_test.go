package subcommand

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// statusFixture is a cluster with ECS services, and with their tasks in Consul as consul-ecs registers them.
type statusFixture struct {
	*clusterWorld
	client *ecs.Client
}

func newStatusFixture(t *testing.T) *statusFixture {
	t.Helper()
	w := newClusterWorld(t)
	w.run(1) // makes the cluster; the task is in no service, and not in the mesh
	return &statusFixture{w, ecs.NewFromConfig(w.ecs.Config())}
}

// service creates an ECS service of a mesh service, and returns its tasks when they run.
func (s *statusFixture) service(name, mesh string, n int) []string {
	s.t.Helper()
	s.ecs.Register(fmt.Sprintf(`{"family": %q, "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
		"cpu": "256", "memory": "512", "containerDefinitions": [{"name": "sidecar-proxy", "image": "envoy:v1.39.1"},
		{"name": "consul-ecs-mesh-init", "image": "consul-ecs", "essential": false, "environment": [
		{"name": "CONSUL_ECS_CONFIG_JSON",
		"value": "{\"bootstrapDir\": \"/consul\", \"service\": {\"name\": \"%s\", \"port\": 1}}"}]}]}`,
		name, mesh))
	_, err := s.client.CreateService(s.t.Context(), &ecs.CreateServiceInput{
		Cluster: aws.String("mesh"), ServiceName: aws.String(name), TaskDefinition: aws.String(name),
		DesiredCount: aws.Int32(int32(n)), LaunchType: types.LaunchTypeFargate,
		NetworkConfiguration: &types.NetworkConfiguration{
			AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	testkit.Eventually(s.t, "the service is steady", func() bool {
		services, err := s.client.DescribeServices(s.t.Context(),
			&ecs.DescribeServicesInput{Cluster: aws.String("mesh"), Services: []string{name}})
		if err != nil {
			s.t.Fatal(err)
		}
		list, err := s.client.ListTasks(s.t.Context(),
			&ecs.ListTasksInput{Cluster: aws.String("mesh"), ServiceName: aws.String(name)})
		if err != nil {
			s.t.Fatal(err)
		}
		ids = nil
		for _, arn := range list.TaskArns {
			ids = append(ids, arn[strings.LastIndexByte(arn, '/')+1:])
		}
		v := services.Services[0]
		return int(v.RunningCount) == n && len(ids) == n && v.Deployments[0].RolloutState == "COMPLETED"
	})
	slices.Sort(ids)
	return ids
}

// register registers tasks without an agent, and with a status of the check of their proxies.
func (s *statusFixture) register(mesh, version, status string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		meta := map[string]string{"source": "consul-ecs", "task-id": id,
			"task-arn": strings.Replace(s.arn, ":cluster/", ":task/", 1) + "/" + id, "mesh-init-version": version}
		for _, suffix := range []string{"", "-sidecar-proxy"} {
			_, err := s.admin.Catalog().Register(&api.CatalogRegistration{
				Node: s.arn, Address: "10.0.0.1",
				Service: &api.AgentService{ID: mesh + "-" + id + suffix, Service: mesh + suffix, Meta: meta},
				Check: &api.AgentCheck{CheckID: "check-" + id + suffix, ServiceID: mesh + "-" + id + suffix,
					Status: map[string]string{"": "passing", "-sidecar-proxy": status}[suffix]},
			}, nil)
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// read runs status -json.
func (s *statusFixture) read(wantCode int, env []string, args ...string) controller.ClusterStatus {
	s.t.Helper()
	code, out, stderr := s.desk(env, append([]string{"status", "-json", "-cluster", s.arn}, args...)...)
	var got controller.ClusterStatus
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		s.t.Fatalf("%v: %s\n%s", err, out, stderr)
	}
	if code != wantCode {
		s.t.Errorf("exit code %d, want %d:\n%s\n%s", code, wantCode, out, stderr)
	}
	return got
}

// problems returns those of each service.
func problems(s controller.ClusterStatus) map[string][]string {
	all := map[string][]string{}
	for _, v := range s.Services {
		all[v.Service] = v.Problems
	}
	return all
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newStatusFixture(t)
	api := s.service("api-v1", "api", 3)
	blue := s.service("web-blue", "web", 2)
	s.register("api", "v1.0.0", "passing", api...)
	s.register("web", "v1.0.0", "passing", blue...)

	got := s.read(0, nil)
	want := controller.ServiceStatus{
		Service: "api", ECS: []string{"api-v1"}, Desired: new(3), Running: new(3), Registered: 3, Passing: 3,
		Tokens: new(0), Sessions: new(0), MeshInit: map[string]int{"v1.0.0": 3}, Envoy: map[string]int{"1.39.1": 1},
	}
	if len(got.Services) != 2 {
		t.Fatalf("services %+v, want two", got.Services)
	}
	if diff := cmp.Diff(want, got.Services[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	testkit.Equal(t, "calls of ListServices, DescribeServices and DescribeTasks", got.AWS.Calls, 3)

	// What no task has registered is found by the task definition, whatever the ECS service is called.
	s.service("silent", "db", 1)
	green := s.service("web-green", "web", 1)
	s.register("web", "v0.9.0", "warning", green...)
	got = s.read(2, nil)
	if diff := cmp.Diff(map[string][]string{
		"api": nil, "db": {"1 running, 0 registered"}, "web": {"3 registered, 2 passing"},
	}, problems(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	testkit.Equal(t, "remarks", got.Services[2].Remarks, []string{"2 versions of consul-ecs"})
	testkit.Equal(t, "ECS services", got.Services[2].ECS, []string{"web-blue", "web-green"})
	if one := s.read(0, nil, "-service", "api"); len(one.Services) != 1 {
		t.Errorf("services %+v, want api", one.Services)
	}
	testkit.Equal(t, "problems", s.read(2, nil, "-service", "nosuch").Problems,
		[]string{`service "nosuch" is not in the cluster`})

	// A dead task that Consul still has.
	s.ecs.Stop(api[0])
	testkit.Eventually(t, "its replacement runs", func() bool {
		return slices.Equal(problems(s.read(2, nil))["api"],
			[]string{"1 registered but STOPPED in ECS"})
	})
}

// Without ECS, what Consul has is shown, and no more is claimed.
func TestStatusWithoutAWS(t *testing.T) {
	t.Parallel()
	s := newStatusFixture(t)
	s.register("api", "v1.0.0", "passing", strings.Repeat("1", 32))
	none := []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_EC2_METADATA_DISABLED=true"}
	got := s.read(3, none)
	if len(got.Services) != 1 {
		t.Fatalf("services %+v, want one", got.Services)
	}
	testkit.Equal(t, "tasks of ECS", got.Services[0].Running, nil)
	testkit.Equal(t, "registered", got.Services[0].Registered, 1)
	code, out, stderr := s.desk(none, "status", "-cluster", s.arn)
	testkit.Equal(t, "exit code", code, 3)
	lines := strings.Split(out, "\n")
	if want := "what ECS runs is unknown: "; !strings.HasPrefix(lines[1], want) {
		t.Errorf("%s%s\nwant a line with %q", out, stderr, want)
	}
	s.register("api", "v1.0.0", "critical", strings.Repeat("1", 32))
	testkit.Equal(t, "problems", problems(s.read(2, none)), map[string][]string{"api": {"1 registered, 0 passing"}})
}
