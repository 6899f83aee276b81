package scenario

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// recorderOptions are what a runRecorder looks for.
type recorderOptions struct {
	// Methods are the auth methods of login tokens, with what a token of theirs is:
	// chaos.ServiceToken or chaos.ClientToken. Services are names in Consul.
	Methods  map[string]chaos.What
	Services []string
	// Serving are the names of the containers without which a task cannot serve, by
	// task; Healthy those of them whose ECS health counts, too.
	Serving, Healthy map[string][]string
	// Stays reports whether something of a task that has stopped will stay.
	Stays func(task string, what chaos.What) bool
}

// runRecorder records the events of one run, and also what has no event. It is safe for
// concurrent use.
type runRecorder struct {
	out     func(Event)
	options recorderOptions

	mu       sync.Mutex
	events   []Event
	tasks    map[string]Event // their starts, by name
	stopped  map[string]Event // those of the tasks that have stopped
	requests []trafficRequest
	left     map[leftKey]time.Time // when it was gone; zero while it is there
	lags     []lag
}

type (
	leftKey struct {
		task string
		what chaos.What
		name string
	}
	lag struct {
		at time.Time
		by time.Duration
	}
)

// newRecorder returns a recorder that passes events on to out.
func newRecorder(out func(Event), o recorderOptions) *runRecorder {
	return &runRecorder{
		out: out, options: o, tasks: map[string]Event{}, stopped: map[string]Event{}, left: map[leftKey]time.Time{},
	}
}

// Event records an event and passes it on.
func (r *runRecorder) Event(e Event) {
	r.add(e)
	r.out(e)
}

func (r *runRecorder) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case KindTask:
		r.tasks[e.Task] = e
	case view.KindStatus:
		if e.Container == "" && e.Status == scheduler.StatusStopped {
			r.stopped[e.Task] = r.tasks[e.Task]
		}
	}
	r.events = append(r.events, e)
}

// Request records a request of the traffic.
func (r *runRecorder) Request(q trafficRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
}

// Watch records what remains of stopped tasks, and how late this machine is, until
// ctx ends. client has the management token of a server that is ready.
func (r *runRecorder) Watch(ctx context.Context, client *api.Client) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { r.beat(ctx) })
	for retry.Sleep(ctx, lookEvery) == nil {
		r.look(ctx, client)
	}
}

// heartbeat is how often the recorder looks at how late it is itself, lateness
// what it takes for the machine's.
const (
	heartbeat = 20 * time.Millisecond
	lateness  = 30 * time.Millisecond
)

// beat measures how late a process of this machine runs that has little to do.
func (r *runRecorder) beat(ctx context.Context) {
	for last := time.Now(); retry.Sleep(ctx, heartbeat) == nil; {
		now := time.Now()
		if by := now.Sub(last) - heartbeat; by > lateness {
			r.mu.Lock()
			r.lags = append(r.lags, lag{now, by})
			r.mu.Unlock()
		}
		last = now
	}
}

// Observed returns the record until now, in the schedule's time: since the traffic
// began.
func (r *runRecorder) Observed(now time.Time) chaos.Observed {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := slices.IndexFunc(r.events, func(e Event) bool { return e.Kind == KindTrafficBegin })
	if begin < 0 {
		return chaos.Observed{}
	}
	since := func(at time.Time) time.Duration { return at.Sub(r.events[begin].Time) }
	o := chaos.Observed{Healed: chaos.Never, Ended: since(now)}
	for _, e := range r.events {
		r.observe(&o, e, since(e.Time))
	}
	for _, q := range r.requests {
		request := chaos.Request{Start: since(q.Start), End: since(q.End)}
		if q.Err != nil {
			request.Error = q.Err.Error()
		}
		o.Requests = append(o.Requests, request)
	}
	for key, at := range r.left {
		gone := chaos.Never
		if !at.IsZero() {
			gone = since(at)
		}
		o.Left = append(o.Left, chaos.Leftover{Task: key.task, What: key.what, Name: key.name, Gone: gone})
	}
	for _, l := range r.lags {
		o.Delays = append(o.Delays, chaos.Delay{At: since(l.at), By: l.by})
	}
	slices.SortFunc(o.Left, func(a, b chaos.Leftover) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(o.States, func(a, b chaos.State) int { return cmp.Compare(a.At, b.At) })
	return o
}

// observe adds an event to what was observed.
func (r *runRecorder) observe(o *chaos.Observed, e Event, at time.Duration) {
	task := slices.IndexFunc(o.Tasks, func(l chaos.TaskLifetime) bool { return l.Task == e.Task })
	switch e.Kind {
	case KindTask:
		o.Tasks = append(o.Tasks,
			chaos.TaskLifetime{Task: e.Task, Started: at, Term: chaos.Never, Stopped: chaos.Never})
	case KindTrafficEnd:
		o.Healed = at
	case view.KindInTraffic:
		o.Traffic = append(o.Traffic, chaos.TrafficChange{At: at, Task: e.Task, In: e.Status == "in"})
	case view.KindDesired:
		o.Tasks[task].Term = at
	case view.KindStatus, view.KindHealth:
		if e.Container == "" && e.Status == scheduler.StatusStopped {
			o.Tasks[task].Stopped = at
		}
		counted := r.options.Serving
		if e.Kind == view.KindHealth {
			counted = r.options.Healthy
		}
		if slices.Contains(counted[e.Task], e.Container) && e.Status != scheduler.StatusPulled {
			unable := e.Status == scheduler.StatusStopped || e.Status == scheduler.HealthUnhealthy
			o.States = append(o.States,
				chaos.State{At: at, Task: e.Task, Container: e.Container, Unable: unable, Why: "is " + e.Status})
		}
	}
}

const (
	// lookEvery is how often Consul is asked what it holds of stopped tasks.
	lookEvery = time.Second
	// lookLimit bounds one look: the server may be frozen.
	lookLimit = 3 * time.Second
)

// look records what is left now. A failed query is repeated the next time.
func (r *runRecorder) look(ctx context.Context, client *api.Client) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	r.mu.Lock()
	stopped := maps.Clone(r.stopped)
	r.mu.Unlock()
	if len(stopped) == 0 {
		return
	}
	look := ConsulQuery{
		Client: client, Checks: file.Checks{
			NoTokensOf: slices.Collect(maps.Keys(r.options.Methods)), NoServices: r.options.Services,
		},
	}
	found, err := look.left(ctx, "")
	if err != nil {
		return
	}
	now := map[leftKey]bool{}
	for name, t := range stopped {
		for _, l := range found {
			if l.Of(t.TaskID) {
				now[leftKey{name, r.what(l), l.String()}] = true
			}
		}
		agent, err := look.agent(ctx, t.Address)
		if err != nil {
			return
		}
		if agent.State != agentLeft && agent.State != agentUnknown {
			now[leftKey{name, chaos.AgentFails, agent.String()}] = true
		}
	}
	r.recordLeftovers(time.Now(), now)
}

func (r *runRecorder) what(l leftover) chaos.What {
	if l.Token != "" {
		return r.options.Methods[l.Method]
	}
	return chaos.Service
}

func (r *runRecorder) recordLeftovers(at time.Time, now map[leftKey]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range now {
		r.left[key] = time.Time{}
	}
	for key, gone := range r.left {
		if !now[key] && gone.IsZero() {
			r.left[key] = at
		}
	}
}

// settleMinimum is enough for a look that starts after the last task's end.
const settleMinimum = lookLimit + 2*lookEvery

// Settle waits, after the last step, until nothing is left of stopped tasks but what
// may remain, or the bound has passed.
func (r *runRecorder) Settle(ctx context.Context) {
	started := time.Now()
	for time.Since(started) < max(settleMinimum, r.patience()) && ctx.Err() == nil {
		_ = retry.Sleep(ctx, lookEvery)
	}
}

// patience returns how long what is left may take to disappear; 0 if it will not.
func (r *runRecorder) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most time.Duration
	for key, gone := range r.left {
		if !gone.IsZero() || r.options.Stays(key.task, key.what) {
			continue
		}
		most = max(most, chaos.Bound(key.what)+2*lookEvery)
	}
	return most
}
