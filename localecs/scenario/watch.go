package scenario

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// watcher follows every health check in Consul with one blocking query, so that
// a change is seen as soon as the server knows it.
type watcher struct {
	client  *api.Client
	changed func(at time.Time, c *api.HealthCheck, status string)

	mu     sync.Mutex // held for reading and replacing the fields below only
	checks allChecks
	stale  bool // the server was lost since, or has not found all agents again
}

// allChecks is every check by node and ID. It is replaced, never changed.
type allChecks map[string]*api.HealthCheck

// statusGone stands for a check that is no longer in the catalog.
const statusGone = "gone"

// newWatcher makes a watcher; changed is called for each check whose status
// changed, with statusGone when it disappeared.
func newWatcher(client *api.Client, changed func(time.Time, *api.HealthCheck, string)) *watcher {
	return &watcher{client: client, changed: changed, checks: allChecks{}}
}

// lookAgain is how long the watcher waits for a server that it has lost.
const lookAgain = 250 * time.Millisecond

// Run watches until ctx ends. A failed query is repeated: the watcher only
// observes, its gaps show as later times.
func (w *watcher) Run(ctx context.Context) {
	var index uint64
	for ctx.Err() == nil {
		opts := consistent()
		opts.WaitIndex, opts.WaitTime = index, 30*time.Second
		checks, meta, err := w.client.Health().State(api.HealthAny, opts.WithContext(ctx))
		if err != nil {
			w.lose()
		} else {
			w.update(time.Now(), checks, !w.current() && !w.knowsNodes(checks))
		}
		if w.current() {
			index = meta.LastIndex
			continue
		}
		index = 0
		_ = retry.Sleep(ctx, lookAgain)
	}
}

func (w *watcher) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
}

func (w *watcher) current() bool {
	_, current := w.Now()
	return current
}

// serfHealth is the check that Consul keeps of a node's agent.
const serfHealth = "serfHealth"

// knowsNodes reports whether the server's gossip knows the nodes of the checks that have
// an agent. A server that has started again takes those that it does not out of the
// catalog as soon as it leads, with all their services; they come back by themselves
// (Consul: reconcileReaped).
func (w *watcher) knowsNodes(checks api.HealthChecks) bool {
	members, err := w.client.Agent().MembersOpts(api.MembersOpts{})
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(checks, func(c *api.HealthCheck) bool {
		return c.CheckID == serfHealth && !slices.ContainsFunc(members, func(m *api.AgentMember) bool {
			return strings.EqualFold(m.Name, c.Node)
		})
	})
}

func (w *watcher) update(at time.Time, checks api.HealthChecks, stale bool) {
	now := make(allChecks, len(checks))
	for _, c := range checks {
		now[c.Node+"/"+c.CheckID] = c
	}
	w.mu.Lock()
	old := w.checks
	w.checks, w.stale = now, stale
	w.mu.Unlock()
	for id, c := range now {
		if before := old[id]; before == nil || before.Status != c.Status {
			w.changed(at, c, c.Status)
		}
	}
	for id, c := range old {
		if now[id] == nil {
			w.changed(at, c, statusGone)
		}
	}
}

// Now returns the present checks. They are not current when they are those before
// the server was lost, or will not hold.
func (w *watcher) Now() (checks allChecks, current bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checks, !w.stale
}

// InTraffic reports whether Consul sends traffic to the task: it has a proxy, or is a
// gateway, and every check of its services and of their node passes.
func (c allChecks) InTraffic(taskID string) bool {
	proxy, gateway, application, node := false, false, false, ""
	for _, check := range c {
		if !hasTask(check.ServiceID, taskID) {
			continue
		}
		if check.Status != api.HealthPassing {
			return false
		}
		node = check.Node
		switch {
		case workload.IsProxyID(check.ServiceID):
			proxy = true
		case ofGateway(check):
			gateway = true
		case check.CheckID != workload.SessionCheckID(check.ServiceID):
			application = true
		}
	}
	return (proxy || gateway && !application) && c.nodePasses(node)
}

// ofGateway reports whether a gateway has such a check: with an agent that of its
// listener, without one that of its proxy's container. The latter a service also has,
// beside those of its application.
func ofGateway(c *api.HealthCheck) bool {
	return strings.HasSuffix(c.Name, "-gateway listener") ||
		c.CheckID == workload.CatalogCheckID(c.ServiceID, workload.ContainerDataplane)
}

// nodePasses reports whether the checks of the node itself pass, such as that of
// its agent by gossip.
func (c allChecks) nodePasses(node string) bool {
	for _, check := range c {
		if check.Node == node && check.ServiceID == "" && check.Status != api.HealthPassing {
			return false
		}
	}
	return true
}

// Count counts the checks of a task by their status.
func (c allChecks) Count(taskID string) map[string]int {
	n := map[string]int{}
	for _, check := range c {
		if hasTask(check.ServiceID, taskID) {
			n[check.Status]++
		}
	}
	return n
}

// Status returns the status of the check that mirrors a container's ECS health, empty when there is
// none. That of a proxy has one name without an agent, whatever its container is called.
func (c allChecks) Status(taskID, container string) string {
	// Of the check ID, with an agent or without, all but the service's name, which is
	// the configuration's to choose.
	service := workload.ServiceID("", taskID)
	agent, catalog := workload.CheckID(service, container), workload.CatalogCheckID(service, container)
	if container == workload.ContainerSidecarProxy {
		catalog = workload.CatalogCheckID(service, workload.ContainerDataplane)
	}
	for _, check := range c {
		if strings.HasSuffix(check.CheckID, agent) || strings.HasSuffix(check.CheckID, catalog) {
			return check.Status
		}
	}
	return ""
}
