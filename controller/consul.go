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

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// readsAtOnce is how many services are read at a time.
	readsAtOnce = 8
	// reread is after how long lists with unchanged indexes are read again: a restored
	// snapshot of Consul may restore old indexes.
	reread = 5 * time.Minute
	// noPolicy is a policy that no token has: the list by it is empty, and its index
	// is that of all tokens.
	noPolicy = "00000000-0000-0000-0000-000000000000"
	// rights are the ACL rules that services and nodes need.
	rights = `node_prefix "" { policy = "write" } service_prefix "" { policy = "write" }`
)

// hidden returns an error for a list without what the token may not read: leftovers of
// dead tasks there would never be removed.
func hidden(meta *api.QueryMeta, err error) error {
	if err != nil || !meta.ResultsFilteredByACLs {
		return err
	}
	return errors.New("results are filtered by ACLs: " + consulutil.Allow(rights))
}

// cache is the last state read from a tenancy.
type cache struct {
	tokens   list[Token]
	services list[Service]
}

// list is not read again until its index changes.
type list[T any] struct {
	ours    []T
	foreign int
	// unclaimed counts tokens of clusters without a controller, of which example is one.
	unclaimed int
	example   string
	index     uint64 // 0 for never read
	at        time.Duration
}

// fresh reports whether the list still has this index.
func (l list[T]) fresh(index uint64, now time.Duration) bool {
	return index != 0 && index == l.index && now-l.at < reread
}

// readConsul reads tokens and services of all tenancies. What could be read is in
// the snapshot, beside an error.
func (c *Cleaner) readConsul(ctx context.Context, r *Report) (*snapshot, error) {
	s := &snapshot{}
	tenancies, err := c.tenancies(ctx)
	errs := []error{err}
	for _, p := range tenancies {
		s.ConsulAt = c.now()
		tokens, at, err := c.readTokens(ctx, p, c.cache[p].tokens)
		services, servicesErr := c.readServices(ctx, p, r, c.cache[p].services)
		c.cache[p] = cache{tokens, services}
		errs = append(errs, err, servicesErr)
		s.ConsulTime = at
		s.Tokens = slices.Concat(s.Tokens, tokens.ours)
		s.Services = slices.Concat(s.Services, services.ours)
		r.Foreign += tokens.foreign + services.foreign
		r.Unclaimed += tokens.unclaimed
		c.warnUnclaimed(tokens)
	}
	for _, err := range errs {
		if err != nil {
			r.ConsulErrors++
		}
	}
	return s, errors.Join(errs...)
}

// tenancies returns the namespaces of the partition, or the one tenancy of the community
// server.
func (c *Cleaner) tenancies(ctx context.Context) ([]Tenancy, error) {
	if c.Partition == "" {
		return []Tenancy{{}}, nil
	}
	namespaces, _, err := c.Consul.Namespaces().List((&api.QueryOptions{Partition: c.Partition}).WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("list namespaces of partition %q: %w", c.Partition, err)
	}
	var tenancies []Tenancy
	for _, n := range namespaces {
		tenancies = append(tenancies, Tenancy{Partition: c.Partition, Namespace: n.Name})
	}
	return tenancies, nil
}

// read returns the options of a request at a tenancy, to go with a context.
func (p Tenancy) read() *api.QueryOptions {
	return &api.QueryOptions{Partition: p.Partition, Namespace: p.Namespace}
}

// write returns the options of a write.
func (p Tenancy) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{Partition: p.Partition, Namespace: p.Namespace}).WithContext(ctx)
}

// readTokens reads the tokens of our auth methods, or returns the old list if none has
// changed, and Consul's time of the answer. On an error the list is empty.
func (c *Cleaner) readTokens(ctx context.Context, p Tenancy, old list[Token]) (list[Token], time.Time, error) {
	var probe consulutil.ListMeta
	err := c.listTokens(consulutil.Stream(ctx, &probe, func(struct{}) error { return nil }), p,
		api.ACLTokenFilterOptions{Policy: noPolicy})
	if consulutil.ACLsDisabled(err) {
		return list[Token]{}, time.Time{}, nil
	}
	if err == nil && old.fresh(probe.Index, c.now()) {
		return old, probe.Date, nil
	}
	read := list[Token]{index: probe.Index, at: c.now()}
	known := c.controlled(ctx)
	for _, filter := range c.filters(p) {
		if err != nil {
			break
		}
		var meta consulutil.ListMeta
		err = c.listTokens(consulutil.Stream(ctx, &meta, func(e tokenEntry) error {
			if t, ok := c.Leftovers.token(e, c.Cluster); ok {
				t.Tenancy = p
				read.ours = append(read.ours, t)
			} else if c.Leftovers.foreign(e, c.Cluster) {
				read.foreign++
			} else if known != nil && c.Leftovers.unclaimed(e, known) {
				read.unclaimed++
				read.example = strings.Clone(e.AccessorID)
			}
			return nil
		}), p, filter)
	}
	if err != nil {
		return list[Token]{}, time.Time{}, fmt.Errorf("list tokens: %w", err)
	}
	return read, probe.Date, nil
}

// controlled returns the clusters, by ARN and by name, of which a controller has a record in our
// auth methods; nil if that could not be read.
func (c *Cleaner) controlled(ctx context.Context) map[string]bool {
	known, tenancy := map[string]bool{}, Tenancy{Partition: c.Partition}
	if c.Partition != "" {
		tenancy.Namespace = defaultName
	}
	for _, method := range c.Leftovers.Methods {
		rules, _, err := c.Consul.ACL().BindingRuleList(method, tenancy.read().WithContext(ctx))
		if err != nil {
			return nil
		}
		for _, arn := range setup.Clusters(rules) {
			known[arn], known[arn[strings.LastIndexByte(arn, '/')+1:]] = true, true
		}
	}
	return known
}

// warnUnclaimed logs once that there are tokens of clusters without a controller. What a login
// declares of its cluster is its client's word, so nothing is deleted for it.
func (c *Cleaner) warnUnclaimed(tokens list[Token]) {
	if tokens.unclaimed == 0 || c.warned {
		return
	}
	c.warned = true
	c.Log.Warn("tokens name clusters without a controller, and no controller deletes them",
		logkey.Tokens, tokens.unclaimed, logkey.Accessor, tokens.example)
}

// filters select the tokens of our auth methods. In a namespace it is that of all
// tokens: the methods are in another one, which the API client cannot express.
func (c *Cleaner) filters(p Tenancy) (filters []api.ACLTokenFilterOptions) {
	if p.Namespace != "" {
		return []api.ACLTokenFilterOptions{{}}
	}
	for _, method := range c.Leftovers.Methods {
		filters = append(filters, api.ACLTokenFilterOptions{AuthMethod: method})
	}
	return filters
}

func (c *Cleaner) listTokens(ctx context.Context, p Tenancy, filter api.ACLTokenFilterOptions) error {
	_, _, err := c.Consul.ACL().TokenListFiltered(filter, p.read().WithContext(ctx))
	return err
}

// readServices reads the instances of all services that consul-ecs registered, or returns
// the old list if no service has changed. A service that could not be read is missing in
// the list, which is read again by the next pass.
func (c *Cleaner) readServices(ctx context.Context, p Tenancy, r *Report, old list[Service]) (list[Service], error) {
	if c.Leftovers.ClusterNode {
		return c.readNode(ctx, p, r, old)
	}
	filter := fmt.Sprintf("ServiceMeta[%q] == %q", config.MetaSource, config.SourceValue)
	options := p.read()
	options.Filter = filter
	names, meta, err := c.Consul.Catalog().Services(options.WithContext(ctx))
	if err != nil {
		return list[Service]{}, fmt.Errorf("list services: %w", err)
	}
	var errs []error
	if err := hidden(meta, nil); err != nil {
		errs = append(errs, fmt.Errorf("list services: %w", err))
	} else if old.fresh(meta.LastIndex, c.now()) {
		return old, nil
	}
	read := list[Service]{index: meta.LastIndex, at: c.now()}
	var mu sync.Mutex
	inParallel(ctx, readsAtOnce, slices.Sorted(maps.Keys(names)), func(name string) {
		ours, foreign, err := c.readService(ctx, p, name, filter)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("read service %q: %w", name, err))
		}
		read.ours = append(read.ours, ours...)
		read.foreign += foreign
	})
	if more := len(errs) - shownErrors; more > 0 {
		errs = append(errs[:shownErrors], fmt.Errorf("and %d more services could not be read", more))
	}
	err = errors.Join(append(errs, ctx.Err())...)
	if err != nil {
		read.index = 0 // read it again
	}
	return read, err
}

// readService reads the instances of one service.
func (c *Cleaner) readService(
	ctx context.Context, p Tenancy, name, filter string,
) (ours []Service, foreign int, err error) {
	options := p.read()
	options.Filter = filter
	var meta consulutil.ListMeta
	_, answer, err := c.Consul.Catalog().Service(name, "",
		options.WithContext(consulutil.Stream(ctx, &meta, func(e serviceEntry) error {
			if s, ok := c.Leftovers.service(e, c.Cluster); ok {
				s.Tenancy = p
				ours = append(ours, s)
			} else if e.foreign(c.Cluster) {
				foreign++
			}
			return nil
		})))
	return ours, foreign, hidden(answer, err)
}

// readNode reads the services on the cluster's node, or returns the old list if nothing on
// it has changed. A blocking query would answer with all of them at its end, changed
// or not; the index of a list without any costs next to nothing.
func (c *Cleaner) readNode(ctx context.Context, p Tenancy, r *Report, old list[Service]) (list[Service], error) {
	node, none, read := c.Cluster.ARN, p.read(), list[Service]{at: c.now()}
	none.Filter = `ID == ""`
	known, meta, err := c.Consul.Catalog().NodeServiceList(node, none.WithContext(ctx))
	if err = hidden(meta, err); err == nil {
		r.NodeMissing = r.NodeMissing || known == nil || known.Node == nil
		if old.fresh(meta.LastIndex, c.now()) {
			return old, nil
		}
		read.index = meta.LastIndex
		all, streamed := p.read(), consulutil.ListMeta{}
		all.Filter = fmt.Sprintf("Meta[%q] == %q", config.MetaSource, config.SourceValue)
		_, meta, err = c.Consul.Catalog().NodeServiceList(node,
			all.WithContext(consulutil.StreamOf(ctx, &streamed, "Services", func(e nodeService) error {
				entry := serviceEntry{Node: node, ServiceID: e.ID, ServiceMeta: e.Meta}
				if s, ok := c.Leftovers.service(entry, c.Cluster); ok && e.Meta[config.MetaTaskID] == s.Task {
					s.Tenancy = p
					read.ours = append(read.ours, s)
				} else if entry.foreign(c.Cluster) {
					read.foreign++
				}
				return nil
			})))
		err = hidden(meta, err)
	}
	if err != nil {
		return list[Service]{}, fmt.Errorf("read services of node %s: %w", node, err)
	}
	return read, nil
}

// inParallel calls do for each item, n at a time, until the context ends.
func inParallel[T any](ctx context.Context, n int, items []T, do func(T)) {
	work := make(chan T)
	var group sync.WaitGroup
	for range min(n, len(items)) {
		group.Go(func() {
			for item := range work {
				do(item)
			}
		})
	}
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		work <- item
	}
	close(work)
	group.Wait()
}
