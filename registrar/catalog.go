package registrar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// catalogRefresh is how often a task looks whether its checks are as it wrote them.
const catalogRefresh = 30 * time.Second

// catalog registers in the catalog of the Consul servers, on one node for all tasks of
// a cluster.
type catalog struct {
	client  *api.Client
	refresh time.Duration
	session *checkSession
}

// newCatalog draws the refresh, so that tasks that start together do not ask together
// for ever.
func newCatalog(client *api.Client) Registrar {
	return &catalog{client: client, refresh: catalogRefresh*9/10 + rand.N(catalogRefresh/5), session: newCheckSession(client)}
}

func (c *catalog) Register(ctx context.Context, token string, w workload.Workload) error {
	return c.register(ctx, token, w, nil)
}

// register reads first, because a registration sets its checks. Updates win over what
// is read.
func (c *catalog) register(ctx context.Context, token string, w workload.Workload, updates []Update) error {
	ids := make([]string, len(w.SyncChecks))
	for i, check := range w.SyncChecks {
		ids[i] = check.ID
	}
	known, err := c.read(ctx, token, w, false, ids)
	if err != nil {
		return err
	}
	for _, u := range updates {
		known[u.Check.ID] = health{u.Status, u.Output}
	}
	if !w.IsGateway() {
		if err := c.put(ctx, token, serviceEntry(w, known)); err != nil {
			return catalogRefusal(fmt.Sprintf("register service %q", w.ID), w, err)
		}
	}
	if err := c.put(ctx, token, proxyEntry(w, known)); err != nil {
		return catalogRefusal(fmt.Sprintf("register proxy %q", w.Proxy.ID), w, err)
	}
	return nil
}

// Deregister removes the proxy first: a service without its proxy takes no traffic. What
// servers that fail did not remove is left to the next call.
func (c *catalog) Deregister(ctx context.Context, token string, w workload.Workload) error {
	var errs []error
	for _, id := range serviceIDs(w) {
		err := deregister(ctx, c.client, token, w, api.CatalogDeregistration{ServiceID: id})
		switch {
		case err == nil:
		case consulutil.Classify(err) == retry.NotYet:
			return catalogRefusal(fmt.Sprintf("deregister service %q", id), w, err)
		default:
			errs = append(errs, catalogRefusal(fmt.Sprintf("deregister service %q", id), w, err))
		}
	}
	c.session.end(ctx, token, w)
	return errors.Join(errs...)
}

// Proxy asks for the instances of the proxy's service. Asked for those of the node,
// Consul would merge the defaults into every service of the cluster.
func (c *catalog) Proxy(ctx context.Context, token string, w workload.Workload) (bootstrap.Proxy, error) {
	what := fmt.Sprintf("read proxy %q", w.Proxy.ID)
	q := query(ctx, token, w)
	q.MergeCentralConfig = true
	q.Filter = fmt.Sprintf("Service.ID == %q and Node.Node == %q", w.Proxy.ID, w.Node)
	found, meta, err := c.client.Health().Service(w.Proxy.Name, "", false, q)
	switch {
	case err != nil:
		return bootstrap.Proxy{}, catalogRefusal(what, w, err)
	case len(found) == 0 && meta.ResultsFilteredByACLs:
		return bootstrap.Proxy{},
			&retry.PermanentError{Err: fmt.Errorf("%s: Consul hides it from the token: %s",
				what, identityRemedy(w.Name))}
	case len(found) == 0:
		return bootstrap.Proxy{}, consulutil.WithClass(fmt.Errorf("%s: it is not in the catalog", what), retry.Gone)
	}
	s := found[0].Service
	s.Datacenter = found[0].Node.Datacenter
	return effectiveProxy(s, w), nil
}

// Refresh returns 0 after the session was replaced, or its services were lost.
func (c *catalog) Refresh() time.Duration {
	if c.session.due() {
		return 0
	}
	return c.refresh
}

// Set writes all checks in one request. What is only to be refreshed is read first and
// written when it differs: a write costs the servers far more than a read.
func (c *catalog) Set(ctx context.Context, token string, w workload.Workload, updates []Update) []Result {
	known, readErr := c.readForRefresh(ctx, token, w, updates)
	var sessionChecks api.HealthChecks
	if slices.ContainsFunc(updates, isPassing) {
		c.session.await(ctx)
		sessionChecks = c.session.unwritten(w)
	}
	results := make([]Result, len(updates))
	for i, u := range updates {
		results[i].Unbound = c.session.unbound()
		if u.Refresh {
			results[i].Err = readErr
		}
	}
	pending := outstanding(updates, known, readErr != nil, len(sessionChecks) > 0)
	if len(pending) == 0 {
		return results
	}
	writes := make([]Update, len(pending))
	for i, p := range pending {
		writes[i] = updates[p]
	}
	ctx, doubt := consulutil.WithDoubt(ctx)
	restored, err := c.write(ctx, token, w, writes, sessionChecks)
	for _, p := range pending {
		results[p].Unsure = doubt.Load() || mayBeDone(err)
		results[p].Err = cmp.Or(err, results[p].Err)
		_, found := known[updates[p].Check.ID]
		results[p].Restored = err == nil && (restored || updates[p].Refresh) && !found
	}
	return results
}

// outstanding returns the updates to write: changes, and of what is to be refreshed what is
// not as known, or everything with all.
func outstanding(updates []Update, known map[string]health, unknown, all bool) (pending []int) {
	for i, u := range updates {
		same := known[u.Check.ID] == health{u.Status, u.Output}
		if !u.Refresh || !unknown && (all || !same) {
			pending = append(pending, i)
		}
	}
	return pending
}

func isPassing(u Update) bool { return u.Status == api.HealthPassing }

// readForRefresh reads the checks that are to be refreshed, and the session checks with
// them.
func (c *catalog) readForRefresh(
	ctx context.Context, token string, w workload.Workload, updates []Update,
) (map[string]health, error) {
	var ids []string
	for _, u := range updates {
		if u.Refresh {
			ids = append(ids, u.Check.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	if session, _, _ := c.session.state(); session != "" {
		ids = append(ids, sessionCheckIDs(w)...)
	}
	c.session.rechecked()
	stale := !slices.ContainsFunc(updates, func(u Update) bool { return u.ReadBack })
	known, err := c.read(ctx, token, w, stale, ids)
	if err == nil {
		c.session.verify(w, known)
	}
	return known, err
}

// write sets checks, and registers the workload again, with them, when its service or
// proxy is not in the catalog and the task continues. Consul then refuses the checks of both.
func (c *catalog) write(
	ctx context.Context, token string, w workload.Workload, updates []Update, sessionChecks api.HealthChecks,
) (restored bool, err error) {
	e := entry(w)
	e.Checks = slices.Clone(sessionChecks)
	for _, u := range updates {
		e.Checks = append(e.Checks, checkEntry(w, u.Check, health{u.Status, u.Output}))
	}
	start := time.Now()
	err = c.put(ctx, token, e)
	ending := slices.ContainsFunc(updates, func(u Update) bool { return u.Last })
	if err != nil && consulutil.Classify(err) == retry.Gone && !ending {
		if restored, err = true, c.register(ctx, token, w, updates); err != nil {
			return restored, err
		}
		if len(sessionChecks) > 0 {
			err = c.put(ctx, token, e)
		}
	}
	if err != nil {
		return restored, catalogRefusal(fmt.Sprintf("set %d checks of %q", len(updates), w.ID), w, err)
	}
	c.session.written(time.Since(start), sessionChecks)
	return restored, nil
}

// read returns what checks of the task report, without those that the catalog does not
// have. stale allows the answer of a server that is behind.
func (c *catalog) read(
	ctx context.Context, token string, w workload.Workload, stale bool, ids []string,
) (map[string]health, error) {
	q := query(ctx, token, w)
	q.AllowStale = stale
	found, err := consulutil.ReadChecks(c.client, w.Node, ids, q)
	if err != nil {
		return nil, err
	}
	known := make(map[string]health, len(found))
	for _, check := range found {
		known[check.CheckID] = health{check.Status, check.Output}
	}
	return known, nil
}

func (c *catalog) put(ctx context.Context, token string, e *api.CatalogRegistration) error {
	_, err := c.client.Catalog().Register(e, (&api.WriteOptions{Token: token}).WithContext(ctx))
	return err
}

// deregister takes a service or a check off the node. One that is not there is no error.
func deregister(
	ctx context.Context, client *api.Client, token string, w workload.Workload, d api.CatalogDeregistration,
) error {
	d.Node, d.Namespace, d.Partition = w.Node, w.Namespace, w.Partition
	_, err := client.Catalog().Deregister(&d, (&api.WriteOptions{Token: token}).WithContext(ctx))
	if err != nil && consulutil.Classify(err) == retry.Gone {
		return nil
	}
	return err
}

// catalogRefusal wraps err as refusal does, for requests to the servers. A task registers on a node
// that only the controller may create; it may start later than the task.
func catalogRefusal(what string, w workload.Workload, err error) error {
	if consulutil.InvalidRegistration(err) {
		return &consulutil.RefusedError{Op: what, Err: err,
			Remedy: "correct service, proxy or gateway in the configuration"}
	}
	if consulutil.Status(err) == http.StatusForbidden && strings.Contains(consulutil.Reason(err), "node:write") &&
		!consulutil.Anonymous(err) {
		return consulutil.WithClass(fmt.Errorf("%s: %w: node %q is not in the catalog; the controller (consul-ecs "+
			"controller) creates it and may not have done so yet", what, err, w.Node), retry.NotYet)
	}
	return refusal(what, w.Name, err)
}
