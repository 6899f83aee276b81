package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// deletesAtOnce is how many things are deleted at a time.
	deletesAtOnce = 16
	// proofLife is how old a plan may be: what it could not delete by then is
	// looked up again by the next pass.
	proofLife = 2 * time.Minute
	// finishLimit is how long deletions in progress may take when the context has ended.
	finishLimit = time.Second
	// nodePatience is how long the deregistration of a node may wait for serf.
	nodePatience = 10 * time.Minute
	// shownErrors is how many different errors are named.
	shownErrors = 5
	// serfHealth is the check that Consul keeps of a node's agent.
	serfHealth = "serfHealth"
)

// errStale is returned for a plan that is too old.
var errStale = errors.New("the status of the task was read too long ago: the next pass reads it again")

// Apply deletes what the report's plan lists, and adds the results to the report. One
// failure does not stop the others; the error joins them.
func (c *Cleaner) Apply(ctx context.Context, r *Report) error {
	d := deletions{cleaner: c, report: r}
	services := slices.IndexFunc(r.Delete, func(i Item) bool { return i.Kind != KindService })
	if services < 0 {
		services = len(r.Delete)
	}
	each(ctx, r.Delete[:services], d.remove)
	each(ctx, r.Delete[services:], d.remove)
	d.addNodes()
	each(ctx, slices.Collect(maps.Values(c.nodes)), d.node)
	return errors.Join(ctx.Err(), summary(r.Failed))
}

// each calls do for each item, several at a time. When the context ends, no more are
// started, and those in progress have a limited time to complete: a deletion that is
// cancelled may have been made, and would not be logged.
func each[T any](ctx context.Context, items []T, do func(context.Context, T)) {
	inParallel(ctx, deletesAtOnce, items, func(item T) {
		if ctx.Err() != nil {
			return
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() {
			retry.Sleep(own, finishLimit)
			cancel()
		})()
		do(own, item)
	})
}

// deletions are those of one Apply.
type deletions struct {
	cleaner *Cleaner
	mu      sync.Mutex
	report  *Report
}

// remove deletes a token or a service.
func (d *deletions) remove(ctx context.Context, i Item) {
	if d.cleaner.now()-d.report.At > proofLife {
		d.record(i, errStale)
		return
	}
	var err error
	switch i.Kind {
	case KindToken:
		err = consulutil.DeleteToken(ctx, d.cleaner.Consul, i.Accessor, i.write(ctx))
	case KindService:
		_, err = d.cleaner.Consul.Catalog().Deregister(&api.CatalogDeregistration{
			Node: i.Node, ServiceID: i.Service, Namespace: i.Namespace, Partition: i.Partition,
		}, i.write(ctx))
		err = consulutil.Advise(consulutil.Needs(err, rights))
	default:
		err = fmt.Errorf("a plan cannot delete a %q", i.Kind)
	}
	d.record(i, err)
}

// record adds the result of a deletion to the report and logs it.
func (d *deletions) record(i Item, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.report.Failed = append(d.report.Failed, Failed{Item: i, Err: err.Error()})
		if !errors.Is(err, errStale) {
			d.report.ConsulErrors++
		}
		return
	}
	d.report.Deleted = append(d.report.Deleted, i)
	fields := []any{logkey.TaskID, i.Task, logkey.Evidence, i.Evidence}
	switch i.Kind {
	case KindToken:
		// Tests of hashicorp's Terraform modules wait for this text.
		d.cleaner.Log.Info("token deleted successfully",
			append(fields, logkey.Accessor, i.Accessor, logkey.AuthMethod, i.Method)...)
	case KindService:
		d.cleaner.Log.Info("deregistered a dead task's service",
			append(fields, logkey.ServiceID, i.Service, logkey.Node, i.Node)...)
	case KindNode:
		d.cleaner.Log.Info("deregistered a dead task's node", append(fields, logkey.Node, i.Node)...)
	}
}

// pendingNode is a node that may be deregistered once serf has noticed that its agent
// is gone, which takes longer than ECS.
type pendingNode struct {
	item  Item
	since time.Duration
}

// addNodes adds the nodes from which a service was just deregistered, and drops those
// that have waited for too long: Consul itself removes them later.
func (d *deletions) addNodes() {
	maps.DeleteFunc(d.cleaner.nodes,
		func(_ string, w pendingNode) bool { return d.cleaner.now()-w.since > nodePatience })
	for _, i := range d.report.Deleted {
		// The cluster's own node stays for its next tasks, which have no agents.
		if i.Kind == KindToken || i.Node == d.cleaner.Cluster.ARN && i.Partition == d.cleaner.Partition {
			continue
		}
		// Nodes are in partitions, not in namespaces.
		d.cleaner.nodes[nodeKey(i)] = pendingNode{Item{Kind: KindNode, Task: i.Task, Node: i.Node,
			Tenancy: Tenancy{Partition: i.Partition}, Reason: i.Reason, Evidence: i.Evidence}, d.cleaner.now()}
	}
}

func nodeKey(i Item) string { return i.Partition + "/" + i.Node }

// node deregisters a node without services whose agent has failed. It is read now and
// not taken from the snapshot: another process may have registered something on it.
func (d *deletions) node(ctx context.Context, w pendingNode) {
	i := w.item
	done, err := d.deregisterIfEmpty(ctx, &i)
	if done || err != nil {
		d.record(i, err)
	}
}

// deregisterIfEmpty deregisters an abandoned node and reports whether it did.
func (d *deletions) deregisterIfEmpty(ctx context.Context, i *Item) (done bool, err error) {
	// A server that was just restarted may serve old state, in which the agent of a
	// live node has failed.
	read := (&api.QueryOptions{Partition: i.Partition, RequireConsistent: true}).WithContext(ctx)
	if i.Partition != "" {
		read.Namespace = "*"
	}
	services, meta, err := d.cleaner.Consul.Catalog().NodeServiceList(i.Node, read)
	if err := hidden(meta, err); err != nil {
		return false, fmt.Errorf("read services of node: %w", err)
	}
	checks, meta, err := d.cleaner.Consul.Health().Node(i.Node, read)
	if err := hidden(meta, err); err != nil {
		return false, fmt.Errorf("read checks of node: %w", err)
	}
	switch {
	case services == nil || services.Node == nil || len(services.Services) > 0:
		d.forget(i) // it does not exist, or is in use
		return false, nil
	case !isAbandoned(services.Services, checks):
		return false, nil
	}
	i.Evidence += "; the node has no services, and its serfHealth check is critical"
	// Not by its name alone: another node may have taken it.
	err = consulutil.RemoveNode(d.cleaner.Consul, services.Node,
		(&api.QueryOptions{Partition: i.Partition}).WithContext(ctx), checks[0])
	switch {
	case errors.Is(err, consulutil.ErrNodeChanged):
		return false, nil // the next pass reads it again
	case err != nil:
		return false, consulutil.Advise(consulutil.Needs(err, rights))
	}
	d.forget(i)
	return true, nil
}

func (d *deletions) forget(i *Item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cleaner.nodes, nodeKey(*i))
}

// isAbandoned reports whether a node has nothing but a serf check that has failed. A
// node without a serf check has no agent: an operator registered it.
func isAbandoned(services []*api.AgentService, checks api.HealthChecks) bool {
	return len(services) == 0 && len(checks) == 1 &&
		checks[0].CheckID == serfHealth && checks[0].ServiceID == "" && checks[0].Status == api.HealthCritical
}

// summary returns one error of many: their number, and the first few different texts.
func summary(failed []Failed) error {
	if len(failed) == 0 {
		return nil
	}
	var texts []string
	for _, f := range failed {
		if !slices.Contains(texts, f.Err) && len(texts) < shownErrors {
			texts = append(texts, f.Err)
		}
	}
	return fmt.Errorf("%d of the deletions failed: %s", len(failed), strings.Join(texts, "; "))
}
