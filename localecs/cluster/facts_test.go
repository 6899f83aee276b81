package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

const taskID = "0f9de17a6465404e8b1b2356dc13c2f8"

func TestTaskHasTheFormOfFargate(t *testing.T) {
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
	got := ClusterFacts{Account: shapes.Account{Region: "us-west-2", ID: "111122223333"}, Name: "mesh"}.Task(taskID, def, nil, a)
	app := got.Containers["app"]
	digits, ok := strings.CutPrefix(app.EndpointID, taskID+"-")
	if !ok || len(digits) != 10 {
		t.Errorf("endpoint ID %s, want the task's and 10 digits", app.EndpointID)
	}
	testkit.Equal(t, "what is no digit in the endpoint ID", strings.Trim(digits, "0123456789"), "")
	testkit.Equal(t, "DockerID", app.DockerID, app.EndpointID)
	arn, ok := strings.CutPrefix(app.ContainerARN, "arn:aws:ecs:us-west-2:111122223333:container/mesh/"+taskID+"/")
	if !ok || len(arn) != 36 {
		t.Errorf("container ARN %s", app.ContainerARN)
	}
	app.EndpointID, app.DockerID, app.ContainerARN = "", "", ""
	got.Containers["app"] = app
	want := metadata.Facts{
		ClusterARN: "arn:aws:ecs:us-west-2:111122223333:cluster/mesh",
		TaskARN:    "arn:aws:ecs:us-west-2:111122223333:task/mesh/" + taskID, Family: "web", Revision: "1", AvailabilityZone: "us-west-2a",
		Limits: &metadata.TaskLimits{CPU: 0.5, Memory: 1024}, HasRole: true, FaultInjection: true,
		Network: metadata.Network{
			IP: "10.0.1.23", MAC: "02:00:00:00:00:01", CIDR: "10.0.1.0/24", Gateway: "10.0.1.1", Resolver: "10.0.1.2",
			PrivateDNSName: "ip-10-0-1-23.us-west-2.compute.internal",
		},
		Containers: map[string]metadata.ContainerFacts{"app": {
			ImageID: "sha256:1cf7263feaf4a5db1c887348599b399f65daa00f161ae5f6df87100ef275c76c",
			Labels:  map[string]string{"team": "a"}, CPU: 256, Memory: 512,
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
	got := ClusterFacts{}.Task(taskID, &taskdef.TaskDefinition{Family: "web", Revision: 7}, nil, network.Addressing{})
	testkit.Equal(t, "limits", got.Limits, nil)
	testkit.Equal(t, "has a role", got.HasRole, false)
	testkit.Equal(t, "revision", got.Revision, "7")
}

// ECS's ARNs begin with the partition of their region.
func TestARNsHaveTheRegionsPartition(t *testing.T) {
	t.Parallel()
	c := ClusterFacts{Account: shapes.Account{Region: "us-gov-west-1", ID: "111122223333"}, Name: "mesh"}
	got := c.Task(taskID, &taskdef.TaskDefinition{Family: "web", ContainerDefinitions: []taskdef.Container{{Name: "app"}}}, nil, network.Addressing{})
	const prefix = "arn:aws-us-gov:ecs:us-gov-west-1:111122223333:"
	testkit.Equal(t, "cluster ARN", got.ClusterARN, prefix+"cluster/mesh")
	testkit.Equal(t, "task ARN", got.TaskARN, prefix+"task/mesh/"+taskID)
	arn, want := got.Containers["app"].ContainerARN, prefix+"container/mesh/"+taskID+"/"
	if !strings.HasPrefix(arn, want) {
		t.Errorf("container ARN %s, want %s", arn, want)
	}
}
