package scenario

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// RecorderOptions are what a Recorder looks for.
type RecorderOptions struct {
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

// Recorder is the Progress of one run, and also records what has no event. It is safe
// for concurrent use.
type Recorder struct {
	Progress
	options RecorderOptions

	mu       sync.Mutex
	started  time.Time // of the schedule
	healed   time.Time
	names    []string // in the order of their start
	tasks    map[string]*recordedTask
	requests []Request
	turns    []turn
	states   []state
	left     map[leftKey]*leftover
	lags     []lag
}

type recordedTask struct {
	id, address            string
	started, term, stopped time.Time
}

type (
	turn struct {
		at   time.Time
		task string
		in   bool
	}
	state struct {
		at time.Time
		chaos.State
	}
	leftKey struct {
		task string
		what chaos.What
		name string
	}
	leftover struct{ gone time.Time }
	lag      struct {
		at time.Time
		by time.Duration
	}
)

// NewRecorder returns a recorder that passes events on to out.
func NewRecorder(out Progress, o RecorderOptions) *Recorder {
	return &Recorder{Progress: out, options: o, tasks: map[string]*recordedTask{}, left: map[leftKey]*leftover{}}
}

// Event records an event and passes it on.
func (r *Recorder) Event(e Event) {
	r.note(e)
	r.Progress.Event(e)
}

func (r *Recorder) note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Kind {
	case KindTask:
		r.names = append(r.names, e.Task)
		r.tasks[e.Task] = &recordedTask{id: e.TaskID, address: e.Address, started: e.Time}
	case KindTrafficBegin:
		r.started = e.Time
	case KindTrafficEnd:
		r.healed = e.Time
	case view.KindInTraffic:
		r.turns = append(r.turns, turn{e.Time, e.Task, e.Status == "in"})
	case view.KindDesired:
		r.tasks[e.Task].term = e.Time
	case view.KindStatus, view.KindHealth:
		if e.Container == "" && e.Status == scheduler.StatusStopped {
			r.tasks[e.Task].stopped = e.Time
		}
		r.noteState(e)
	}
}

// noteState records whether a container can serve.
func (r *Recorder) noteState(e Event) {
	of := r.options.Serving
	if e.Kind == view.KindHealth {
		of = r.options.Healthy
	}
	for _, name := range of[e.Task] {
		if name == e.Container && e.Status != scheduler.StatusPulled {
			unable := e.Status == scheduler.StatusStopped || e.Status == scheduler.HealthUnhealthy
			r.states = append(r.states, state{e.Time, chaos.State{Task: e.Task, Container: name, Unable: unable, Why: "is " + e.Status}})
		}
	}
}

// Request records a request of the traffic.
func (r *Recorder) Request(q Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
}

// Watch records what remains of stopped tasks, and how late this machine is, until
// ctx ends. client has the management token of a server that is ready.
func (r *Recorder) Watch(ctx context.Context, client *api.Client) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { r.beat(ctx) })
	r.watchLeft(ctx, client)
}

// heartbeat is how often the recorder looks at how late it is itself, lateness
// what it takes for the machine's.
const (
	heartbeat = 20 * time.Millisecond
	lateness  = 30 * time.Millisecond
)

// beat measures how late a process of this machine runs that has little to do.
func (r *Recorder) beat(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
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
func (r *Recorder) Observed(now time.Time) chaos.Observed {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := chaos.Observed{Healed: r.since(r.healed), Ended: r.since(now)}
	if r.started.IsZero() { // there was no traffic
		return chaos.Observed{}
	}
	for _, q := range r.requests {
		request := chaos.Request{Start: r.since(q.Start), End: r.since(q.End)}
		if q.Err != nil {
			request.Error = q.Err.Error()
		}
		o.Requests = append(o.Requests, request)
	}
	for _, name := range r.names {
		t := r.tasks[name]
		o.Tasks = append(o.Tasks, chaos.Life{Task: name, Started: r.since(t.started), Term: r.since(t.term), Stopped: r.since(t.stopped)})
	}
	for _, t := range r.turns {
		o.Traffic = append(o.Traffic, chaos.Turn{At: r.since(t.at), Task: t.task, In: t.in})
	}
	for _, s := range r.states {
		s.At = r.since(s.at)
		o.States = append(o.States, s.State)
	}
	for key, l := range r.left {
		o.Left = append(o.Left, chaos.Leftover{Task: key.task, What: key.what, Name: key.name, Gone: r.since(l.gone)})
	}
	for _, l := range r.lags {
		o.Lags = append(o.Lags, chaos.Lag{At: r.since(l.at), By: l.by})
	}
	slices.SortFunc(o.Left, func(a, b chaos.Leftover) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(o.States, func(a, b chaos.State) int { return cmp.Compare(a.At, b.At) })
	return o
}

// since returns a time of the schedule; Never for one that has not come.
func (r *Recorder) since(at time.Time) time.Duration {
	if at.IsZero() {
		return chaos.Never
	}
	return at.Sub(r.started)
}

const (
	// lookEvery is how often Consul is asked what it holds of stopped tasks.
	lookEvery = time.Second
	// lookLimit bounds one look: the server may be frozen.
	lookLimit = 3 * time.Second
)

// watchLeft looks every second until ctx ends.
func (r *Recorder) watchLeft(ctx context.Context, client *api.Client) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.look(ctx, client)
	}
}

// look records what is left now. A failed query is repeated the next time.
func (r *Recorder) look(ctx context.Context, client *api.Client) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	stopped := r.stopped()
	if len(stopped) == 0 {
		return
	}
	found, err := Left(ctx, client, "", slices.Collect(maps.Keys(r.options.Methods)), r.options.Services)
	if err != nil {
		return
	}
	now := map[leftKey]bool{}
	for name, t := range stopped {
		for _, l := range found {
			if l.Of(t.id) {
				now[leftKey{name, r.what(l), l.String()}] = true
			}
		}
		agent, err := Agent(ctx, client, t.address)
		if err != nil {
			return
		}
		if agent.State != AgentLeft && agent.State != AgentUnknown {
			now[leftKey{name, chaos.AgentFails, agent.String()}] = true
		}
	}
	r.noteLeft(time.Now(), now)
}

func (r *Recorder) what(l Leftover) chaos.What {
	if l.Token != "" {
		return r.options.Methods[l.Method]
	}
	return chaos.Service
}

func (r *Recorder) noteLeft(at time.Time, now map[leftKey]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range now {
		if l := r.left[key]; l == nil || !l.gone.IsZero() {
			r.left[key] = &leftover{}
		}
	}
	for key, l := range r.left {
		if !now[key] && l.gone.IsZero() {
			l.gone = at
		}
	}
}

// stopped returns the tasks that have stopped.
func (r *Recorder) stopped() map[string]recordedTask {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]recordedTask{}
	for name, t := range r.tasks {
		if !t.stopped.IsZero() {
			found[name] = *t
		}
	}
	return found
}

// settleMinimum is enough for a look that starts after the last task's end.
const settleMinimum = lookLimit + 2*lookEvery

// Settle waits, after the last step, until nothing is left of stopped tasks but what
// may remain, or the bound has passed.
func (r *Recorder) Settle(ctx context.Context) {
	started := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for time.Since(started) < max(settleMinimum, r.patience()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// patience returns how long what is left may take to disappear; 0 if it will not.
func (r *Recorder) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most time.Duration
	for key, l := range r.left {
		if !l.gone.IsZero() || r.options.Stays(key.task, key.what) {
			continue
		}
		most = max(most, chaos.Bound(key.what)+2*lookEvery)
	}
	return most
}
