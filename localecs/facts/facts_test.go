package facts

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/localecs/endpoints/metadata"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

const taskID = "0f9de17a6465404e8b1b2356dc13c2f8"

func TestTaskIsSaidInFargatesForm(t *testing.T) {
	t.Parallel()
	port, cpu, memory, yes := 8080, 256, 512, true
	def := &taskdef.TaskDefinition{
		Family: "web", CPU: "512", Memory: "1024", TaskRoleARN: "arn:aws:iam::111122223333:role/web", EnableFaultInjection: &yes,
		ContainerDefinitions: []taskdef.Container{{
			Name: "app", Image: "web:7", CPU: &cpu, Memory: &memory,
			DockerLabels:     map[string]string{"team": "a"},
			PortMappings:     []taskdef.PortMapping{{ContainerPort: &port, Protocol: "tcp"}},
			LogConfiguration: &taskdef.LogConfiguration{LogDriver: "awslogs", Options: map[string]string{"awslogs-group": "/ecs/web", "awslogs-stream-prefix": "p"}},
		}},
	}
	a := network.Addressing{
		IP: netip.MustParseAddr("10.0.1.23"), MAC: []byte{2, 0, 0, 0, 0, 1}, CIDR: netip.MustParsePrefix("10.0.1.0/24"),
		Gateway: netip.MustParseAddr("10.0.1.1"), Resolver: netip.MustParseAddr("10.0.1.2"), PrivateDNSName: "ip-10-0-1-23.us-west-2.compute.internal",
	}
	got := Cluster{Name: "mesh", Region: "us-west-2", Account: "111122223333"}.Task(taskID, def, a)
	app := got.Containers["app"]
	digits, ok := strings.CutPrefix(app.EndpointID, taskID+"-")
	if !ok || len(digits) != 10 || strings.Trim(digits, "0123456789") != "" || app.DockerID != app.EndpointID {
		t.Errorf("IDs %s and %s", app.EndpointID, app.DockerID)
	}
	arn, ok := strings.CutPrefix(app.ContainerARN, "arn:aws:ecs:us-west-2:111122223333:container/mesh/"+taskID+"/")
	if !ok || len(arn) != 36 {
		t.Errorf("container ARN %s", app.ContainerARN)
	}
	app.EndpointID, app.DockerID, app.ContainerARN = "", "", ""
	got.Containers["app"] = app
	want := metadata.Facts{
		LaunchType: "FARGATE", ClusterARN: "arn:aws:ecs:us-west-2:111122223333:cluster/mesh",
		TaskARN: "arn:aws:ecs:us-west-2:111122223333:task/mesh/" + taskID, Family: "web", Revision: "1", AvailabilityZone: "us-west-2a",
		Limits: &metadata.TaskLimits{CPU: 0.5, Memory: 1024}, HasRole: true, FaultInjection: true,
		Network: metadata.Network{
			IP: "10.0.1.23", MAC: "02:00:00:00:00:01", CIDR: "10.0.1.0/24", Gateway: "10.0.1.1", Resolver: "10.0.1.2",
			PrivateDNSName: "ip-10-0-1-23.us-west-2.compute.internal",
		},
		Containers: map[string]metadata.ContainerFacts{"app": {
			DockerName: "app", ImageID: "sha256:1cf7263feaf4a5db1c887348599b399f65daa00f161ae5f6df87100ef275c76c",
			Labels: map[string]string{"team": "a"}, CPU: 256, Memory: 512,
			LogDriver: "awslogs", LogOptions: map[string]string{"awslogs-group": "/ecs/web", "awslogs-stream": "p/app/" + taskID},
			Ports: []metadata.Port{{ContainerPort: 8080, HostPort: 8080, Protocol: "tcp"}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestTaskWithoutSizesHasNoLimits(t *testing.T) {
	t.Parallel()
	got := Cluster{}.Task(taskID, &taskdef.TaskDefinition{Family: "web", Revision: 7}, network.Addressing{})
	if got.Limits != nil || got.HasRole || got.Revision != "7" {
		t.Errorf("%+v", got)
	}
}
