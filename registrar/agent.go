package registrar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// followLimit is how long the checks of the proxy may take to follow those of the service:
// that of its listener runs every second. The pauses between two reads of them grow from
// followPause: most follow at once. publishPause is the longest, and that while a proxy starts.
const (
	followLimit  = 1500 * time.Millisecond
	followPause  = 10 * time.Millisecond
	publishPause = 200 * time.Millisecond
)

// sendPause is the time for an agent to send a change to the servers and for all of them to
// apply it, before the first of two reads; before the second it is twice that.
const sendPause = 50 * time.Millisecond

// agent registers with the Consul client agent in the task. One goroutine at a time calls Set
// and Refresh; Register may be called beside them.
type agent struct {
	client *api.Client

	// behind is since when the proxy's checks have differed from the service's; zero when
	// they do not.
	behind time.Time
	// postponed reports that the last Set has left a write to the next one.
	postponed bool
	// unsent reports that the servers may lack what followed from the last change.
	unsent bool
	// outputs are those that the agent has taken last, by check ID.
	outputs map[string]string
	// registered reports a registration since the last Set: the agent may count changes as sent
	// that it has not sent.
	registered atomic.Bool
}

// Register writes nothing to an agent that has not joined. Such an agent refuses every token.
// Without ACLs, it takes a service, though not a proxy, and when the same service is registered
// again, counts it and its checks as sent to the servers until its next full synchronization.
func (a *agent) Register(ctx context.Context, token string, w workload.Workload) error {
	opts := api.ServiceRegisterOpts{Token: token}.WithContext(ctx)
	if !w.IsGateway() {
		if token == "" {
			if err := consulutil.HasLeader(ctx, a.client); err != nil {
				return fmt.Errorf("register service %q: %w", w.ID, err)
			}
		}
		if err := a.client.Agent().ServiceRegisterOpts(serviceRegistration(w), opts); err != nil {
			return refusal(fmt.Sprintf("register service %q", w.ID), w.Name, err)
		}
	}
	if err := a.client.Agent().ServiceRegisterOpts(proxyRegistration(w), opts); err != nil {
		return refusal(fmt.Sprintf("register proxy %q", w.Proxy.ID), w.Name, err)
	}
	a.registered.Store(true)
	return nil
}

// Deregister removes the proxy first: a service without its proxy takes no
// traffic, while a proxy without its service would be an error to the agent.
func (a *agent) Deregister(ctx context.Context, token string, w workload.Workload) error {
	var errs []error
	for _, id := range serviceIDs(w) {
		err := a.client.Agent().ServiceDeregisterOpts(id, query(ctx, token, w))
		if err != nil && consulutil.Classify(err) != retry.Gone {
			errs = append(errs, refusal(fmt.Sprintf("deregister service %q", id), w.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (a *agent) Proxy(ctx context.Context, token string, w workload.Workload) (bootstrap.Proxy, error) {
	s, _, err := a.client.Agent().Service(w.Proxy.ID, query(ctx, token, w))
	if err != nil {
		return bootstrap.Proxy{}, refusal(fmt.Sprintf("read proxy %q", w.Proxy.ID), w.Name, err)
	}
	return effectiveProxy(s, w), nil
}

// Refresh returns a third of the TTL, so that two refreshes may be lost. What is postponed is due
// at once.
func (a *agent) Refresh() time.Duration {
	if a.postponed {
		return 0
	}
	return ttl / 3
}

// Set writes all checks at once, so that one that hangs does not cost another its TTL.
//
// Each write makes the agent send all that has changed. So a refresh is postponed while the
// proxy lags: at an agent that has just started, the check of the proxy's listener is critical
// until its first run, and the alias check for a minute if it ran before the agent had added
// it, unless a check of the service is registered. The last write is not postponed, as nothing
// comes after it.
func (a *agent) Set(ctx context.Context, token string, w workload.Workload, updates []Update) []Result {
	results := make([]Result, len(updates))
	updates = a.withReasons(updates)
	a.recordRegistration()
	if !slices.ContainsFunc(updates, func(u Update) bool { return !u.Refresh || u.Last }) {
		checks, lags := a.proxyLags(ctx, token, w)
		if lags || a.unsent && a.sent(ctx, token, w, checks, updates...) {
			a.postponed, a.unsent = lags, a.unsent && lags
			return results
		}
		if worst(checks, w.ID, "") != api.HealthCritical && worst(checks, w.Proxy.ID, aliasType) == api.HealthCritical {
			for i := range updates {
				updates[i].First, updates[i].Refresh = true, false
			}
		}
	}
	a.postponed, a.unsent = false, false
	var wg sync.WaitGroup
	for i, u := range updates {
		wg.Go(func() {
			results[i] = a.set(ctx, token, w, u)
			results[i].Unsure = mayBeDone(results[i].Err)
		})
	}
	wg.Wait()
	a.remember(updates, results)
	for i, u := range updates {
		if results[i].Err == nil && (!u.Refresh || results[i].Restored) {
			results[i].Err = a.publishProxy(ctx, token, w, u)
			break // it sends everything that has changed
		}
	}
	return results
}

// recordRegistration records that the agent may have counted changes as sent in a registration.
func (a *agent) recordRegistration() {
	if a.registered.Swap(false) {
		a.unsent = true
	}
}

// remember notes the outputs that the agent has.
func (a *agent) remember(updates []Update, results []Result) {
	if a.outputs == nil {
		a.outputs = map[string]string{}
	}
	for i, u := range updates {
		if results[i].Err == nil {
			a.outputs[u.Check.ID] = u.Output
		}
	}
}

// withReasons returns the updates, of which those are no refreshes that have another reason for the
// same critical status.
func (a *agent) withReasons(updates []Update) []Update {
	updates = slices.Clone(updates)
	for i, u := range updates {
		before, known := a.outputs[u.Check.ID]
		if u.Refresh && !u.Last && known && before != u.Output && u.Status == api.HealthCritical {
			updates[i].First, updates[i].Refresh = true, false
		}
	}
	return updates
}

// publishProxy makes sure that the agent sends the health of the proxy to the servers, after an
// update that it has taken. The checks of the proxy follow those of the service a moment after
// the write that changed them, and an agent whose full synchronization has failed, or met a
// registration, sends only what has changed by the end of a write, for 15 s and in a large
// cluster longer (agent/ae of Consul). Callers would keep a proxy whose service is critical.
// So the update is written again unless the servers have what followed. The first write and
// the last do not wait for that: the agent of a task that starts is often in that state, and
// nothing follows the last one.
func (a *agent) publishProxy(ctx context.Context, token string, w workload.Workload, u Update) error {
	if u.First || u.Last {
		a.awaitProxy(ctx, token, w)
	} else {
		for _, pause := range []time.Duration{sendPause, 2 * sendPause} {
			if retry.Sleep(ctx, pause) != nil {
				break
			}
			checks, lags := a.proxyLags(ctx, token, w)
			if !lags && a.sent(ctx, token, w, checks, u) {
				return nil
			}
			a.postponed, a.unsent = lags, lags
		}
	}
	if a.postponed || ctx.Err() != nil {
		return nil // the servers have the update itself
	}
	return a.setStatus(ctx, token, w, u)
}

// Publisher returns what waits until the checks of a workload's proxy pass at the agent, and
// makes that send them to the servers, for a workload without checks to Set; see publishProxy.
// Its write is the end of maintenance mode, which changes nothing: in that mode they do not pass.
func Publisher(client *api.Client) func(ctx context.Context, token string, w workload.Workload) error {
	return (&agent{client: client}).publish
}

func (a *agent) publish(ctx context.Context, token string, w workload.Workload) error {
	for {
		checks, err := a.client.Agent().ChecksWithFilterOpts("", query(ctx, token, w))
		if err != nil {
			return fmt.Errorf("read checks of proxy %q: %w", w.Proxy.ID, err)
		}
		if worst(checks, w.Proxy.ID, "") == api.HealthPassing {
			break
		}
		if err := retry.Sleep(ctx, publishPause); err != nil {
			return err
		}
	}
	if err := a.client.Agent().DisableServiceMaintenanceOpts(w.Proxy.ID, query(ctx, token, w)); err != nil {
		return refusal(fmt.Sprintf("publish health of proxy %q", w.Proxy.ID), w.Name, err)
	}
	return nil
}

// awaitProxy returns when the checks of the proxy have followed those of the service, or do
// not follow.
func (a *agent) awaitProxy(ctx context.Context, token string, w workload.Workload) {
	for pause := followPause; ; pause = min(2*pause, publishPause) {
		if _, lags := a.proxyLags(ctx, token, w); !lags || retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// proxyLags reads the checks, and reports whether those of the proxy may yet follow those of the
// service. Without an answer of the agent they may not.
func (a *agent) proxyLags(ctx context.Context, token string, w workload.Workload) (map[string]*api.AgentCheck, bool) {
	ctx, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	checks, err := a.client.Agent().ChecksWithFilterOpts("", query(ctx, token, w))
	switch {
	case err != nil:
		return nil, false
	case worst(checks, w.ID, "") == worst(checks, w.Proxy.ID, ""):
		a.behind = time.Time{}
		return checks, false
	case a.behind.IsZero():
		a.behind = time.Now()
	}
	return checks, time.Since(a.behind) < followLimit
}

// sent reports whether the agent has the updates, and a server the statuses of the workload's
// checks. Any server may answer, without the leader.
func (a *agent) sent(
	ctx context.Context, token string, w workload.Workload, checks map[string]*api.AgentCheck, updates ...Update,
) bool {
	node := ""
	for _, u := range updates {
		own := checks[u.Check.ID]
		if own == nil || own.Status != u.Status {
			return false // lost, or an earlier write was applied late
		}
		node = own.Node
	}
	q := query(ctx, token, w)
	q.AllowStale = true
	known, _, err := a.client.Health().Node(node, q)
	if err != nil {
		return false
	}
	status := map[string]string{}
	for _, c := range known {
		status[c.CheckID] = c.Status
	}
	for id, c := range checks {
		if slices.Contains(serviceIDs(w), c.ServiceID) && status[id] != c.Status {
			return false
		}
	}
	return true
}

// aliasType is the type of an alias check in an agent's answer.
const aliasType = "alias"

// worst returns the status of a service with these checks of its agent, or of those of a type.
// The node's count for each service.
func worst(checks map[string]*api.AgentCheck, serviceID, kind string) string {
	status := api.HealthPassing
	for _, c := range checks {
		switch {
		case c.ServiceID != "" && c.ServiceID != serviceID, kind != "" && c.Type != kind:
		case c.Status == api.HealthCritical:
			return api.HealthCritical
		case c.Status == api.HealthWarning:
			status = api.HealthWarning
		}
	}
	return status
}

// set also registers the check when the caller has not written it yet, because one of
// an older version would have a TTL of years, for which the agent cannot be asked (definitions of
// TTL checks read back empty). It sends a check that was registered at once, but another output
// alone only minutes later (check_update_interval).
func (a *agent) set(ctx context.Context, token string, w workload.Workload, u Update) Result {
	if u.First && u.Status != api.HealthCritical {
		restored, err := a.ensureCheck(ctx, token, w, u)
		return Result{Err: err, Restored: err == nil && restored}
	}
	err := a.setStatus(ctx, token, w, u)
	switch {
	case consulutil.Classify(err) == retry.Gone:
		restored, err := a.ensureCheck(ctx, token, w, u)
		return Result{Err: err, Restored: err == nil && (restored || !u.First)}
	case err == nil && u.First: // which sends the output
		err = a.registerCheck(ctx, token, w, u.Check, u.Status)
	}
	return Result{Err: err}
}

// ensureCheck creates or renews the check and its TTL. restored reports that the workload was
// registered again. An agent that already has the check keeps its old status over the one in
// the registration, so the status is written separately.
func (a *agent) ensureCheck(
	ctx context.Context, token string, w workload.Workload, u Update,
) (restored bool, err error) {
	err = a.registerCheck(ctx, token, w, u.Check, u.Status)
	if consulutil.Classify(err) == retry.Gone && !u.Last {
		// The agent lost the service, with its checks: it restarted.
		if err := a.Register(ctx, token, w); err != nil {
			return false, err
		}
		restored = true
		err = a.registerCheck(ctx, token, w, u.Check, u.Status)
	}
	if err != nil {
		return restored, err
	}
	return restored, a.setStatus(ctx, token, w, u)
}

func (a *agent) registerCheck(
	ctx context.Context, token string, w workload.Workload, c workload.SyncCheck, status string,
) error {
	// Namespace and partition are in the body.
	q := (&api.QueryOptions{Token: token}).WithContext(ctx)
	if err := a.client.Agent().CheckRegisterOpts(checkRegistration(w, c, status), q); err != nil {
		return refusal(fmt.Sprintf("register check %q", c.ID), w.Name, err)
	}
	return nil
}

func (a *agent) setStatus(ctx context.Context, token string, w workload.Workload, u Update) error {
	if err := a.client.Agent().UpdateTTLOpts(u.Check.ID, u.Output, u.Status, query(ctx, token, w)); err != nil {
		return refusal(fmt.Sprintf("set check %q to %s", u.Check.ID, u.Status), w.Name, err)
	}
	return nil
}

func query(ctx context.Context, token string, w workload.Workload) *api.QueryOptions {
	return (&api.QueryOptions{Token: token, Namespace: w.Namespace, Partition: w.Partition}).WithContext(ctx)
}

func writeOptions(ctx context.Context, token string, w workload.Workload) *api.WriteOptions {
	return (&api.WriteOptions{Token: token, Namespace: w.Namespace, Partition: w.Partition}).WithContext(ctx)
}

// refusal wraps a failed request and, when Consul refused it, adds the remedy.
func refusal(what, service string, err error) error {
	switch {
	case consulutil.WithoutServers(err):
		return fmt.Errorf("%s: %w: %s", what, err, consulutil.NotJoined)
	case consulutil.Status(err) != http.StatusForbidden, consulutil.UnknownToken(err):
		return fmt.Errorf("%s: %w", what, err)
	case consulutil.Anonymous(err):
		return &consulutil.RefusedError{Op: what, Err: err,
			Remedy: "no token was sent: set consulLogin.enabled to true or give this container CONSUL_HTTP_TOKEN"}
	default:
		return &consulutil.RefusedError{Op: what, Err: err, Remedy: identityRemedy(service)}
	}
}

func identityRemedy(service string) string {
	return fmt.Sprintf("the token needs a service identity for %q; with consulLogin, tag the task role with %s=%s",
		service, config.TagServiceName, service)
}
