package scenario

import (
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// SoFar says how far a task is that something is awaited of; empty when there is
// nothing to tell.
func (t Task) SoFar(a file.Await, checks Checks) string {
	switch {
	case a.Stopped:
		return "is " + t.View().KnownStatus
	case a.Restarts > 0:
		return fmt.Sprintf("%d of %d", t.Restarts(a.Container), a.Restarts)
	case a.InTraffic != nil:
		n := checks.Count(t.ID())
		return fmt.Sprintf("%d checks passing, %d critical", n[api.HealthPassing], n[api.HealthCritical])
	case a.Tokens != nil:
		return ""
	}
	if status := checks.Status(t.ID(), a.Container); status != "" {
		return "is " + status
	}
	return "not in Consul"
}
