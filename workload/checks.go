package workload

import (
	"fmt"

	"github.com/meshtask/consul-ecs/config"
)

// setAgentChecks adds the TTL checks of a service. A gateway has none: the agent checks
// its listener.
func (w *Workload) setAgentChecks(cfg *config.Config) {
	if w.IsGateway() {
		return
	}
	for _, container := range cfg.HealthSyncContainers {
		w.addContainerCheck(CheckID(w.ID, container), syncCheckName, container)
	}
}

// setCatalog adds what is registered without an agent only: the node, the task's
// address, and checks that nothing but health-sync makes passing.
func (w *Workload) setCatalog(cfg *config.Config, t Task) error {
	var err error
	if w.Address, err = t.NodeIP(); err != nil {
		return err
	}
	w.Node = t.ClusterARN()
	if w.IsGateway() {
		w.SyncChecks = []SyncCheck{aggregate(w.ID)}
		return nil
	}
	w.Transparent = cfg.TransparentProxy.Enabled
	for _, container := range cfg.HealthSyncContainers {
		if container == ContainerDataplane {
			continue // the aggregate has its ID
		}
		w.addContainerCheck(CatalogCheckID(w.ID, container), catalogCheckName, container)
	}
	w.SyncChecks = append(w.SyncChecks, aggregate(w.ID), aggregate(w.Proxy.ID))
	return nil
}

func aggregate(serviceID string) SyncCheck {
	return SyncCheck{
		ID:        CatalogCheckID(serviceID, ContainerDataplane),
		Container: ContainerDataplane,
		Name:      aggregateCheckName,
		Notes:     "Passing while the proxy's container and all containers of healthSyncContainers are healthy in ECS.",
		ServiceID: serviceID,
		Aggregate: true,
	}
}

// addContainerCheck adds the check of the service that mirrors a container's health.
func (w *Workload) addContainerCheck(id, name, container string) {
	w.SyncChecks = append(w.SyncChecks, SyncCheck{
		ID:        id,
		Container: container,
		Name:      name,
		Notes:     fmt.Sprintf("Mirrors the ECS health check of the essential container %q.", container),
		ServiceID: w.ID,
	})
}
