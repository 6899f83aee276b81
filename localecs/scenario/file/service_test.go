package file_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestServiceInputIsValidForCreateService(t *testing.T) {
	t.Parallel()
	two, twenty, zero, least, no := 2, 20, 0, 50, false
	network := &shapes.NetworkConfiguration{AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-0localecs"}}}
	for name, tt := range map[string]struct {
		wish file.Service
		want shapes.ServiceInput
	}{
		"little": {file.Service{Definition: "a.json"}, shapes.ServiceInput{
			ServiceName: "little", Cluster: "c", TaskDefinition: "a:1", DesiredCount: &zero, LaunchType: "FARGATE",
			HealthCheckGracePeriod:  &zero,
			DeploymentConfiguration: &shapes.DeploymentConfiguration{CircuitBreaker: &shapes.CircuitBreaker{}},
			NetworkConfiguration:    network, EnableECSManagedTags: &no,
		}},
		"much": {file.Service{
			Count: 2, MinimumHealthyPercent: &least,
			CircuitBreaker:         shapes.CircuitBreaker{Enable: true, Rollback: true},
			HealthCheckGracePeriod: 20 * time.Second,
			Tags:                   map[string]string{"b": "2", "a": "1"}, PropagateTags: "SERVICE",
		}, shapes.ServiceInput{
			ServiceName: "much", Cluster: "c", TaskDefinition: "a:1", DesiredCount: &two, LaunchType: "FARGATE",
			HealthCheckGracePeriod: &twenty,
			DeploymentConfiguration: &shapes.DeploymentConfiguration{
				MinimumHealthyPercent: &least, CircuitBreaker: &shapes.CircuitBreaker{Enable: true, Rollback: true},
			},
			NetworkConfiguration: network, EnableECSManagedTags: &no,
			Tags: []shapes.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, PropagateTags: "SERVICE",
		}},
	} {
		if d := cmp.Diff(tt.want, tt.wish.Input(name, "c", "a:1")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestPercentagesThatBlockDeployments(t *testing.T) {
	t.Parallel()
	fifty, hundred, more := 50, 100, 101
	for _, tt := range []struct {
		least, most *int
		problems    int
	}{{nil, nil, 0}, {nil, &hundred, 1}, {&hundred, &hundred, 1}, {&fifty, &hundred, 0}, {&hundred, nil, 0},
		{nil, &more, 0}} {
		got := file.Service{Definition: "a.json", MinimumHealthyPercent: tt.least, MaximumPercent: tt.most}.Problems()
		if len(got) != tt.problems {
			t.Errorf("%v, %v: got %q", tt.least, tt.most, got)
		}
	}
}
