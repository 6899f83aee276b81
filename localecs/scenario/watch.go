package scenario

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/workload"
)

// watcher follows every health check in Consul with one blocking query, so that
// a change is seen as soon as the server knows it.
type watcher struct {
	client *api.Client
	// changed is called for each check whose status changed; "gone" when it
	// disappeared.
	changed func(at time.Time, c *api.HealthCheck, status string)

	mu     sync.Mutex // held for reading and replacing the fields below only
	checks checkMap
	wake   chan struct{} // closed and replaced at every change
}

// checkMap is every check by node and ID. It is replaced, never changed.
type checkMap map[string]*api.HealthCheck

// statusGone stands for a check that is no longer in the catalog.
const statusGone = "gone"

func newWatcher(client *api.Client, changed func(time.Time, *api.HealthCheck, string)) *watcher {
	return &watcher{client: client, changed: changed, checks: checkMap{}, wake: make(chan struct{})}
}

// run watches until ctx ends. A failed query is repeated after a second: the
// watcher only observes, its gaps show as later times.
func (w *watcher) run(ctx context.Context) {
	var index uint64
	for ctx.Err() == nil {
		opts := (&api.QueryOptions{WaitIndex: index, WaitTime: 30 * time.Second}).WithContext(ctx)
		checks, meta, err := w.client.Health().State(api.HealthAny, opts)
		if err != nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			index = 0
			continue
		}
		index = meta.LastIndex
		w.update(time.Now(), checks)
	}
}

func (w *watcher) update(at time.Time, checks api.HealthChecks) {
	now := make(checkMap, len(checks))
	for _, c := range checks {
		now[c.Node+"/"+c.CheckID] = c
	}
	w.mu.Lock()
	old := w.checks
	w.checks = now
	close(w.wake)
	w.wake = make(chan struct{})
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

// until waits until ok holds for the present checks, asking again at every
// change.
func (w *watcher) until(ctx context.Context, ok func(checkMap) bool) error {
	for {
		checks, wake := w.now()
		if ok(checks) {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// now returns the present checks and a channel that is closed when they change.
func (w *watcher) now() (checkMap, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.checks, w.wake
}

// inTraffic says whether Consul sends traffic to the task: it has a proxy and
// every check of its services passes.
func inTraffic(checks checkMap, taskID string) bool {
	proxies := 0
	for _, c := range checks {
		if !hasTask(c.ServiceID, taskID) {
			continue
		}
		if c.Status != api.HealthPassing {
			return false
		}
		if strings.HasSuffix(c.ServiceID, workload.ProxyID("")) {
			proxies++
		}
	}
	return proxies > 0
}
