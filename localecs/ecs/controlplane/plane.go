package controlplane

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Launcher runs tasks. Both methods return at once.
type Launcher interface {
	// Launch runs a task and reports each change of it, from any goroutine but
	// in order, until a report is Gone.
	Launch(l Launch)
	// Stop requests an orderly stop. It may have no effect on a task without a report:
	// each report of a task that goes on running repeats the request.
	Stop(taskID, code, reason string)
}

// Launch is a task to run.
type Launch struct {
	ID, Cluster string
	// Reference is the referenceId of RunTask.
	Reference string
	// Service is empty for a standalone task.
	Service string
	// Definition includes the overrides and the containers that AWS adds, and must not be modified.
	Definition *taskdef.TaskDefinition
	// ContainerARNs are by container name.
	ContainerARNs map[string]string
	// Report takes the state of the task at now.
	Report func(r Report, now time.Time)
}

// Lag is the delay of answers: those of AWS are eventually consistent, with no
// documented bound. Zero is no delay.
type Lag struct {
	// New is how long a new task is MISSING in DescribeTasks, and a new service in
	// DescribeServices.
	New time.Duration `yaml:"new"`
	// Interface is how long an attached interface of a task shows no address.
	Interface time.Duration `yaml:"eni"`
	// Tags is how long a new task shows none.
	Tags time.Duration `yaml:"tags"`
	// Lists is the age of lists of tasks and services.
	Lists time.Duration `yaml:"lists"`
	// Counts is the age of the numbers of running and pending tasks in
	// DescribeServices.
	Counts time.Duration `yaml:"counts"`
}

// Options configure a Plane.
type Options struct {
	Account  shapes.Account
	Launcher Launcher
	// Protections are shared with the agent's endpoint, where tasks set their own.
	Protections *metadata.Protections
	// Throttle applies AWS's token buckets.
	Throttle bool
	Lag      Lag
	Added    Added
	// Observe receives each new version of a task, in order for each task, with the
	// Plane locked: it must neither block nor call it. It may be nil.
	Observe func(task shapes.Task, at time.Time)
}

// Plane is the state of the ECS API in one account and region. Its methods are
// the API's calls; their errors are *shapes.Error.
type Plane struct {
	options  Options
	account  shapes.Account
	launches *rate.Limiter // Fargate's bucket of tasks to start, apart from those of calls
	changed  chan struct{} // a task or a service has changed
	closed   chan struct{}
	close    func() // closes closed
	serving  sync.WaitGroup

	mu       sync.Mutex
	clusters map[string]*cluster
	families map[string][]*Revision
	tasks    map[string]*Record  // by ID
	records  []*Record           // by creation
	created  int                 // tasks so far
	services map[string]*Service // by ARN
	tokens   map[string]token
	swept    time.Time
	handover []func() // for the launcher, once the Plane is unlocked
}

// New returns a Plane with the cluster "default", whose capacity provider is
// FARGATE: a call that names no launch type gets it.
func New(o Options) *Plane {
	p := &Plane{
		options: o, account: o.Account, launches: rate.NewLimiter(rate.Inf, 0), changed: make(chan struct{}, 1),
		closed:   make(chan struct{}),
		clusters: map[string]*cluster{}, families: map[string][]*Revision{}, tasks: map[string]*Record{},
		services: map[string]*Service{}, tokens: map[string]token{},
	}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	if o.Throttle {
		p.launches = rate.NewLimiter(20, 100) // "AWS Fargate throttling quotas"
	}
	p.clusters[shapes.Default] = &cluster{
		name: shapes.Default, status: shapes.Active, providers: Fargate(),
		strategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
	}
	return p
}

// Start reconciles the services until Close.
func (p *Plane) Start() { p.serving.Go(p.reconcile) }

// Close stops what Start has started. It may be called again.
func (p *Plane) Close() {
	p.close()
	p.serving.Wait()
}

const reconcilePeriod = time.Second

func (p *Plane) reconcile() {
	tick := time.NewTicker(reconcilePeriod)
	defer tick.Stop()
	for {
		select {
		case <-p.closed:
			return
		case <-p.changed:
		case <-tick.C:
		}
		p.Look(time.Now())
	}
}

func (p *Plane) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// unlock unlocks the Plane, and then hands over to the launcher, which may report
// before it returns.
func (p *Plane) unlock() {
	handover := p.handover
	p.handover = nil
	p.mu.Unlock()
	for _, do := range handover {
		do()
	}
}

func (p *Plane) version(r *Record, now time.Time) {
	p.notify()
	if p.options.Observe != nil {
		p.options.Observe(r.Shape(now, Lag{}, false), now)
	}
}

func (p *Plane) cluster(ref string) (*cluster, error) {
	name, err := p.account.ClusterName(ref)
	if err != nil {
		return nil, err
	}
	c := p.clusters[name]
	switch {
	case c == nil:
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "Cluster not found.")
	case c.status != shapes.Active:
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "The referenced cluster was inactive.")
	}
	return c, nil
}

// each calls do, while p is locked, with a cluster and each name that parse finds in refs.
func (p *Plane) each(in string, refs []string, parse func(cluster, ref string) (string, error),
	do func(c *cluster, name string)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(in)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		name, err := parse(c.name, ref)
		if err != nil {
			return err
		}
		do(c, name)
	}
	return nil
}

type token struct {
	input   string
	at      time.Time
	tasks   []string // IDs
	service *Service
}

const (
	// keepToken is how long a client token stands for its first call.
	keepToken = 24 * time.Hour
	// keepInactive is how long a deleted service is shown; AWS documents no time.
	keepInactive = time.Hour
	// sweepPeriod is how often records of stopped tasks are looked for.
	sweepPeriod = time.Minute
)

func (p *Plane) sweep(now time.Time) {
	maps.DeleteFunc(p.tokens, func(_ string, t token) bool { return now.Sub(t.at) >= keepToken })
	maps.DeleteFunc(p.services, func(_ string, v *Service) bool {
		return v.status == shapes.Inactive && now.Sub(v.ended) >= keepInactive
	})
	if now.Sub(p.swept) < sweepPeriod {
		return
	}
	p.swept = now
	maps.DeleteFunc(p.tasks, func(_ string, r *Record) bool { return !r.visible(now) })
	p.records = slices.DeleteFunc(p.records, func(r *Record) bool { return !r.visible(now) })
}

func fingerprint(in any) string {
	text, _ := json.Marshal(in) // cannot fail: it was decoded from JSON
	return string(text)
}
