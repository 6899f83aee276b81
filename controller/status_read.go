package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// statusReads is how many services are read at a time.
	statusReads = 16
	// definitionsAtOnce and tasksAtOnce bound what one look asks ECS about services that are not registered, and
	// about tasks of those that disagree.
	definitionsAtOnce, tasksAtOnce = 100, 1000
	// servicePrefix begins the group of a service's tasks.
	servicePrefix = "service:"
)

// StatusReader compares what Consul and ECS have of one cluster, any number of times. It writes nothing, and is not
// safe for concurrent use.
type StatusReader struct {
	// only are the services to read, all if empty.
	only    []string
	ecs     *awsutil.ECSReader
	cleaner *Cleaner
	// rows are the mesh services of ECS services, by definition; an empty name is of one that is in no mesh.
	rows map[string]rowKey
}

// NewStatusReader returns a reader of the cluster of o, of which ECS is not used; only selects services.
func NewStatusReader(o CleanerOptions, ecs *awsutil.ECSReader, only []string) *StatusReader {
	return &StatusReader{only: only, ecs: ecs, cleaner: NewCleaner(o), rows: map[string]rowKey{}}
}

// Look reads both sides. The error is that of Consul's services; what else could not be read is in the status.
func (r *StatusReader) Look(ctx context.Context) (ClusterStatus, error) {
	before := r.ecs.Counts()
	s := ClusterStatus{Cluster: r.cleaner.Cluster.ARN, Services: []ServiceStatus{}}
	var services []awsutil.ECSService
	var servicesErr error
	var asking sync.WaitGroup
	asking.Go(func() { services, servicesErr = r.ecs.Services(ctx, s.Cluster) })
	facts, err := r.readConsul(ctx, &s)
	asking.Wait()
	if err != nil {
		return s, err
	}
	if servicesErr == nil {
		servicesErr = r.readECS(ctx, facts, services, &s)
	}
	if servicesErr != nil {
		facts.ecs = nil
		s.unknown(true, "what ECS runs", servicesErr)
	}
	s.Services = facts.rows()
	if len(r.only) > 0 {
		s.Services = slices.DeleteFunc(s.Services, func(v ServiceStatus) bool { return !r.wanted(v.Service) })
	}
	for _, name := range r.only {
		if !slices.ContainsFunc(s.Services, func(v ServiceStatus) bool { return v.Service == name }) {
			s.Problems = append(s.Problems, fmt.Sprintf("service %q is not in the cluster", name))
		}
	}
	s.AWS = r.ecs.Counts().Sub(before)
	return s, nil
}

func (r *StatusReader) wanted(name string) bool {
	return len(r.only) == 0 || slices.Contains(r.only, name)
}

// unknown records why something is unknown.
func (s *ClusterStatus) unknown(needed bool, what string, err error) {
	s.Unknown = append(s.Unknown, fmt.Sprintf("%s is unknown: %v", what, err))
	s.Partial = s.Partial || needed
}

// readConsul reads all that Consul has.
func (r *StatusReader) readConsul(ctx context.Context, s *ClusterStatus) (*statusFacts, error) {
	c := r.cleaner
	facts := &statusFacts{proxies: map[nodeObject]bool{}, failing: map[nodeObject]bool{}}
	tenancies, err := c.tenancies(ctx)
	if err != nil {
		return nil, err
	}
	tokens, hiddenTokens := map[string]int{}, error(nil)
	for _, p := range tenancies {
		if err := errors.Join(r.readInstances(ctx, p, facts), r.readFailing(ctx, p, facts)); err != nil {
			return nil, err
		}
		list, _, err := c.readTokens(ctx, p, list[Token]{})
		hiddenTokens = errors.Join(hiddenTokens, err)
		for _, t := range list.ours {
			tokens[t.Task]++
		}
	}
	if hiddenTokens == nil {
		facts.tokens = tokens
	} else {
		s.unknown(false, "the number of tokens", hiddenTokens)
	}
	if facts.sessions, err = r.readSessions(ctx); err != nil {
		s.unknown(false, "the number of sessions", err)
	}
	r.readLeaders(ctx, s)
	return facts, nil
}

// readInstances reads the instances of a tenancy: a request for all names, and one for each.
func (r *StatusReader) readInstances(ctx context.Context, p Tenancy, facts *statusFacts) error {
	c, options := r.cleaner, p.read()
	options.Filter = fmt.Sprintf("ServiceMeta[%q] == %q", config.MetaSource, config.SourceValue)
	names, meta, err := c.Consul.Catalog().Services(options.WithContext(ctx))
	if err = hiddenFrom(meta, err, readCatalog); err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	maps.DeleteFunc(names, func(name string, _ []string) bool {
		return !r.wanted(strings.TrimSuffix(name, workload.ProxyName("")))
	})
	var mu sync.Mutex
	var errs []error
	inParallel(ctx, statusReads, slices.Sorted(maps.Keys(names)), func(name string) {
		var streamed consulutil.ListMeta
		_, meta, err := c.Consul.Catalog().Service(name, "",
			options.WithContext(consulutil.Stream(ctx, &streamed, func(e serviceEntry) error {
				mu.Lock()
				defer mu.Unlock()
				facts.add(e, name, p, c)
				return nil
			})))
		if err = hiddenFrom(meta, err, readCatalog); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("read service %q: %w", name, err))
		}
	})
	return errors.Join(append(errs[:min(len(errs), shownErrors)], ctx.Err())...)
}

// readCatalog are the rules that lists of services and checks need.
const readCatalog = `node_prefix "" { policy = "read" } service_prefix "" { policy = "read" }`

// hiddenFrom returns an error for a list without what a token without the rules may not read.
func hiddenFrom(meta *api.QueryMeta, err error, rules string) error {
	if err == nil && meta.ResultsFilteredByACLs {
		return errors.New("results are filtered by ACLs: " + consulutil.Allow(rules))
	}
	return err
}

// add adds an instance, or a proxy, of the cluster's tasks.
func (f *statusFacts) add(e serviceEntry, name string, p Tenancy, c *Cleaner) {
	s, ours := c.Leftovers.service(e, c.Cluster)
	switch {
	case !ours:
	case workload.IsProxyID(s.ID):
		f.proxies[nodeObject{s.Node, s.ID}] = true
	default:
		s.Tenancy = p
		f.instances = append(f.instances, instance{Service: s, name: name, kind: e.ServiceKind, meta: e.ServiceMeta})
	}
}

// readFailing reads the checks that do not pass, of the whole tenancy: fewer than those of all instances.
func (r *StatusReader) readFailing(ctx context.Context, p Tenancy, facts *statusFacts) error {
	for _, state := range []string{api.HealthWarning, api.HealthCritical} {
		var streamed consulutil.ListMeta
		_, meta, err := r.cleaner.Consul.Health().State(state, p.read().WithContext(consulutil.Stream(ctx, &streamed,
			func(check struct{ Node, ServiceID string }) error {
				facts.failing[nodeObject{check.Node, check.ServiceID}] = true
				return nil
			})))
		if err = hiddenFrom(meta, err, readCatalog); err != nil {
			return fmt.Errorf("list checks in state %s: %w", state, err)
		}
	}
	return nil
}

// readSessions counts the sessions of tasks without an agent, which are on the cluster's node, by service ID: that
// and a random number are their names.
func (r *StatusReader) readSessions(ctx context.Context) (map[string]int, error) {
	sessions, meta, err := r.cleaner.Consul.Session().Node(r.cleaner.Cluster.ARN,
		(&api.QueryOptions{}).WithContext(ctx))
	if err = hiddenFrom(meta, err, `session_prefix "" { policy = "read" }`); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, s := range sessions {
		counts[s.Name[:max(0, strings.LastIndexByte(s.Name, '-'))]]++
	}
	return counts, nil
}

// readLeaders reads the leader of each generation. If there are locks, but neither is held, that is a problem: a
// controller has led before.
func (r *StatusReader) readLeaders(ctx context.Context, s *ClusterStatus) {
	known, leads := false, false
	for _, of := range []LeaderStatus{{Command: "controller"}, {Command: "acl-controller"}} {
		name := map[string]string{"controller": setup.AgentlessName}[of.Command]
		pair, _, err := r.cleaner.Consul.KV().Get(LockKey(s.Cluster, r.cleaner.Partition, name),
			(&api.QueryOptions{}).WithContext(ctx))
		switch {
		case err != nil:
			s.unknown(false, "who leads", err)
			return
		case pair != nil && pair.Session != "":
			of.Leader, leads = string(pair.Value), true
		}
		known = known || pair != nil
		s.Controllers = append(s.Controllers, of)
	}
	if known && !leads {
		s.Problems = append(s.Problems, "no controller leads")
	}
}

// readECS attributes the ECS services to mesh services: by the group of one registered task of each, then by the task
// definitions of the others. Where the counts differ, all registered tasks are looked up.
func (r *StatusReader) readECS(
	ctx context.Context, facts *statusFacts, services []awsutil.ECSService, s *ClusterStatus,
) error {
	tasks := map[rowKey][]string{}
	for _, i := range facts.instances {
		tasks[i.key()] = append(tasks[i.key()], i.Task)
	}
	facts.tasks = map[string]awsutil.ECSTask{}
	if err := r.attributeByTask(ctx, facts, services, tasks); err != nil {
		return err
	}
	differing := facts.attribute(services, r.rows, tasks)
	if len(r.only) == 0 || len(differing) > 0 || len(tasks) < len(r.only) {
		if err := r.attributeByDefinition(ctx, services); err != nil {
			s.unknown(true, "which other ECS services are of the mesh", err)
		}
		differing = facts.attribute(services, r.rows, tasks)
	}
	return r.describe(ctx, facts, differing[:min(len(differing), tasksAtOnce)])
}

// attribute sets the ECS services of each mesh service, and returns the tasks of those whose counts differ.
func (f *statusFacts) attribute(
	services []awsutil.ECSService, rows map[string]rowKey, tasks map[rowKey][]string,
) (differing []string) {
	f.ecs = map[rowKey][]awsutil.ECSService{}
	running := map[rowKey]int{}
	for _, s := range services {
		if key := rows[definition(s)]; key.name != "" {
			f.ecs[key] = append(f.ecs[key], s)
			running[key] += s.Running
		}
	}
	for key, ids := range tasks {
		if running[key] != len(ids) {
			differing = append(differing, ids...)
		}
	}
	slices.Sort(differing)
	return differing
}

// definition returns what identifies the configuration of a service's tasks.
func definition(s awsutil.ECSService) string { return cmp.Or(s.Definition, s.Name) }

// inService reports whether a service started the task.
func inService(t awsutil.ECSTask) bool { return strings.HasPrefix(t.Group, servicePrefix) }

func (r *StatusReader) attributeByTask(
	ctx context.Context, facts *statusFacts, services []awsutil.ECSService, tasks map[rowKey][]string,
) error {
	row := map[string]rowKey{}
	for key, ids := range tasks {
		row[ids[0]] = key
	}
	if err := r.describe(ctx, facts, slices.Sorted(maps.Keys(row))); err != nil {
		return err
	}
	byGroup := map[string]rowKey{}
	for id, key := range row {
		byGroup[facts.tasks[id].Group] = key
	}
	for _, s := range services {
		if key, ok := byGroup[servicePrefix+s.Name]; ok {
			r.rows[definition(s)] = key
		}
	}
	return nil
}

// attributeByDefinition reads the configuration in task definitions that are not known yet, first of the services that
// have the names of wanted ones.
func (r *StatusReader) attributeByDefinition(ctx context.Context, services []awsutil.ECSService) error {
	unknown := slices.DeleteFunc(slices.Clone(services), func(s awsutil.ECSService) bool {
		_, known := r.rows[definition(s)]
		return known || s.Definition == ""
	})
	likely := func(s awsutil.ECSService) int {
		for _, name := range r.only {
			if strings.Contains(s.Name+" "+s.Definition, name) {
				return 0
			}
		}
		return 1
	}
	slices.SortStableFunc(unknown, func(a, b awsutil.ECSService) int { return cmp.Compare(likely(a), likely(b)) })
	for i, s := range unknown {
		if i == definitionsAtOnce {
			return fmt.Errorf("%d of their task definitions were not read", len(unknown)-i)
		}
		family, text, err := r.ecs.Environment(ctx, s.Definition, workload.ContainerMeshInit, config.EnvVar)
		switch {
		case err == nil:
			r.rows[s.Definition] = r.rowOf(family, text)
		case errors.Is(err, errors.ErrUnsupported):
			r.rows[s.Definition] = rowKey{}
		default:
			return err
		}
	}
	return nil
}

// rowOf returns the row of tasks with a configuration, which is empty if the task definition does not have it.
func (r *StatusReader) rowOf(family, text string) rowKey {
	cfg, _, err := config.Parse([]byte(text))
	if err != nil {
		cfg = &config.Config{}
	}
	name, err := workload.NameOf(cfg, workload.Task{Family: family})
	if err != nil {
		return rowKey{}
	}
	key := rowKey{name: name}
	if r.cleaner.Partition != "" {
		key.tenancy = Tenancy{Partition: r.cleaner.Partition, Namespace: cmp.Or(namespaceOf(cfg), defaultName)}
	}
	return key
}

func namespaceOf(cfg *config.Config) string {
	switch {
	case cfg.Gateway != nil:
		return cfg.Gateway.Namespace
	case cfg.Service != nil:
		return cfg.Service.Namespace
	}
	return ""
}

// describe adds what ECS answers about tasks.
func (r *StatusReader) describe(ctx context.Context, facts *statusFacts, ids []string) error {
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, known := facts.tasks[id]
		return known
	})
	answer, err := r.ecs.Describe(ctx, r.cleaner.Cluster.ARN, ids)
	for _, t := range answer.Tasks {
		facts.tasks[t.ID] = t
	}
	for _, f := range answer.Failures {
		if f.Reason == awsutil.TaskMissing {
			facts.tasks[f.ID] = awsutil.ECSTask{ID: f.ID}
		}
	}
	return err
}
