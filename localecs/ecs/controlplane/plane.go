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
	// Names are the task's in Cloud Map, in lower case.
	Names []string
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
	// CloudMap has DNS names by the IDs of services and namespaces of Cloud Map, at the end of their ARNs.
	CloudMap map[string]string
	// Route receives what Service Connect leads where, after each change, with the Plane locked: it must
	// neither block nor call it. It may be nil.
	Route func([]shapes.Route)
	// HealthyAfter is how long a task without a health check runs before its service
	// counts it as healthy: HealthyAfter on AWS.
	HealthyAfter time.Duration
	// Observe receives each new version of a task, in order for each task, with the
	// Plane locked: it must neither block nor call it. It may be nil.
	Observe func(task shapes.Task, at time.Time)
}

// HealthyAfter is AWS's time after which a running task without a health check counts as healthy, by the
// API reference of minimumHealthyPercent.
const HealthyAfter = 40 * time.Second

// Plane is the ECS API in one account and region. The methods of its parts are the API's
// calls; their errors are *shapes.Error.
type Plane struct {
	clusterAPI
	definitionAPI
	serviceAPI
	taskAPI
	tagAPI
	reconciler
	state *state
}

// state is what the calls share.
type state struct {
	options Options
	account shapes.Account
	changed chan struct{} // a task or a service has changed

	mu       sync.Mutex // guards what follows
	clusters map[string]*cluster
	families map[string][]*Revision
	tasks    map[string]*Record  // by ID
	records  []*Record           // by creation
	created  int                 // tasks so far
	services map[string]*Service // by ARN
	tokens   map[string]token
	swept    time.Time
	handover []func() // for the launcher, once the state is unlocked
}

// New returns a Plane with the cluster "default", whose capacity provider is
// FARGATE: a call that names no launch type gets it.
func New(o Options) *Plane {
	s := &state{
		options: o, account: o.Account, changed: make(chan struct{}, 1),
		clusters: map[string]*cluster{}, families: map[string][]*Revision{}, tasks: map[string]*Record{},
		services: map[string]*Service{}, tokens: map[string]token{},
	}
	s.clusters[shapes.Default] = &cluster{
		name: shapes.Default, status: shapes.Active, providers: Fargate(),
		strategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
	}
	l := &taskLifecycle{state: s, launches: rate.NewLimiter(rate.Inf, 0)}
	if o.Throttle {
		l.launches = rate.NewLimiter(20, 100) // "AWS Fargate throttling quotas"
	}
	closed := make(chan struct{})
	return &Plane{
		clusterAPI: clusterAPI{s}, definitionAPI: definitionAPI{s}, serviceAPI: serviceAPI{s, l},
		taskAPI: taskAPI{s, l}, tagAPI: tagAPI{s},
		reconciler: reconciler{state: s, lifecycle: l, closed: closed, close: sync.OnceFunc(func() { close(closed) })},
		state:      s,
	}
}

func (s *state) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// unlock unlocks the Plane, and then hands over to the launcher, which may report
// before it returns.
func (s *state) unlock() {
	handover := s.handover
	s.handover = nil
	s.mu.Unlock()
	for _, do := range handover {
		do()
	}
}

func (s *state) version(r *Record, now time.Time) {
	s.notify()
	if s.options.Observe != nil {
		s.options.Observe(r.Shape(now, Lag{}, false), now)
	}
}

func (s *state) cluster(ref string) (*cluster, error) {
	name, err := s.account.ClusterName(ref)
	if err != nil {
		return nil, err
	}
	c := s.clusters[name]
	switch {
	case c == nil:
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "Cluster not found.")
	case c.status != shapes.Active:
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "The referenced cluster was inactive.")
	}
	return c, nil
}

// each calls do, while p is locked, with a cluster and each name that parse finds in refs.
func (s *state) each(in string, refs []string, parse func(cluster, ref string) (string, error),
	do func(c *cluster, name string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.cluster(in)
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

func (s *state) sweep(now time.Time) {
	maps.DeleteFunc(s.tokens, func(_ string, t token) bool { return now.Sub(t.at) >= keepToken })
	maps.DeleteFunc(s.services, func(_ string, v *Service) bool {
		return v.status == shapes.Inactive && now.Sub(v.ended) >= keepInactive
	})
	if now.Sub(s.swept) < sweepPeriod {
		return
	}
	s.swept = now
	maps.DeleteFunc(s.tasks, func(_ string, r *Record) bool { return !r.visible(now) })
	s.records = slices.DeleteFunc(s.records, func(r *Record) bool { return !r.visible(now) })
}

func fingerprint(in any) string {
	text, _ := json.Marshal(in) // cannot fail: it was decoded from JSON
	return string(text)
}
