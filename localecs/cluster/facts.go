package cluster

import (
	"maps"
	"strconv"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// ClusterFacts is an ECS cluster.
type ClusterFacts struct {
	Account shapes.Account
	Name    string
}

// Task returns what the metadata of a task has besides its state, in Fargate's form. A
// container without an ARN in containerARNs, by name, gets one.
func (c ClusterFacts) Task(
	id string, def *taskdef.TaskDefinition, containerARNs map[string]string, a network.Addressing,
) metadata.Facts {
	f := metadata.Facts{
		ClusterARN: c.Account.Cluster(c.Name),
		TaskARN:    c.Account.Task(c.Name, id),
		Family:     def.Family, Revision: strconv.Itoa(max(def.Revision, 1)),
		AvailabilityZone: c.Account.Region + "a",
		Limits:           taskLimits(def),
		Network: metadata.Network{
			IP: a.IP.String(), MAC: a.MAC.String(), CIDR: a.CIDR.String(), Gateway: a.Gateway.String(),
			Resolver: a.Resolver.String(), PrivateDNSName: a.PrivateDNSName,
		},
		HasRole:        def.TaskRoleARN != "",
		FaultInjection: taskdef.Or(def.EnableFaultInjection, false),
		Containers:     map[string]metadata.ContainerFacts{},
	}
	for _, d := range def.ContainerDefinitions {
		container := containerFacts(id, d)
		if container.ContainerARN = containerARNs[d.Name]; container.ContainerARN == "" {
			container.ContainerARN = c.Account.Container(c.Name, id, uuid.NewString())
		}
		f.Containers[d.Name] = container
	}
	return f
}

func containerFacts(taskID string, d taskdef.Container) metadata.ContainerFacts {
	endpoint := shapes.RuntimeID(taskID)
	f := metadata.ContainerFacts{
		EndpointID: endpoint, DockerID: endpoint,
		ImageID: shapes.ImageDigest(d.Image),
		Labels:  d.DockerLabels,
		CPU:     int64(taskdef.Or(d.CPU, 0)),
		Memory:  int64(taskdef.Or(d.Memory, 0)),
	}
	if l := d.LogConfiguration; l != nil {
		f.LogDriver, f.LogOptions = l.LogDriver, logOptions(l, d.Name, taskID)
	}
	for _, p := range d.PortMappings {
		port := uint16(taskdef.Or(p.ContainerPort, 0))
		f.Ports = append(f.Ports, metadata.Port{ContainerPort: port, HostPort: port, Protocol: p.Protocol})
	}
	return f
}

// logOptions returns the definition's options, the prefix made into the stream's name as the agent does.
func logOptions(l *taskdef.LogConfiguration, container, taskID string) map[string]string {
	options := maps.Clone(l.Options)
	if prefix, ok := options["awslogs-stream-prefix"]; ok {
		delete(options, "awslogs-stream-prefix")
		options["awslogs-stream"] = prefix + "/" + container + "/" + taskID
	}
	return options
}

func taskLimits(def *taskdef.TaskDefinition) *metadata.TaskLimits {
	units, _ := strconv.Atoi(def.CPU)
	memory, _ := strconv.Atoi(def.Memory)
	if units == 0 && memory == 0 {
		return nil
	}
	return &metadata.TaskLimits{CPU: float64(units) / 1024, Memory: int64(memory)}
}
