package controlplane

import (
	"crypto/rand"
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Added are the containers that AWS adds to tasks. Their names are made for each task.
type Added struct {
	// ServiceConnect is the proxy of Service Connect, which has a health check. It is in the
	// tasks of services with Service Connect; nil refuses those.
	ServiceConnect *taskdef.Container
	// GuardDuty is the agent of GuardDuty Runtime Monitoring, in every task; nil adds none.
	GuardDuty *taskdef.Container
}

// addTo returns the definition of one task with its containers. As in the ECS agent, each
// container depends on Service Connect's proxy being HEALTHY, so that it starts first and stops
// last. GuardDuty's agent depends on nothing, and nothing on it.
func (a Added) addTo(def *taskdef.TaskDefinition, connect bool) *taskdef.TaskDefinition {
	if a.GuardDuty == nil && !connect {
		return def
	}
	changed := *def
	changed.ContainerDefinitions = slices.Clone(def.ContainerDefinitions)
	if connect {
		proxy := named(a.ServiceConnect, "ecs-service-connect-")
		for i := range changed.ContainerDefinitions {
			c := &changed.ContainerDefinitions[i]
			c.DependsOn = append(slices.Clone(c.DependsOn),
				taskdef.Dependency{ContainerName: proxy.Name, Condition: taskdef.ConditionHealthy})
		}
		changed.ContainerDefinitions = append(changed.ContainerDefinitions, proxy)
	}
	if a.GuardDuty != nil {
		changed.ContainerDefinitions = append(changed.ContainerDefinitions, named(a.GuardDuty, "aws-guardduty-agent-"))
	}
	return &changed
}

// named returns a copy of a container whose name ends in random characters.
func named(c *taskdef.Container, prefix string) taskdef.Container {
	const random = 5
	copied := *c
	copied.Name = prefix + rand.Text()[:random]
	return copied
}
