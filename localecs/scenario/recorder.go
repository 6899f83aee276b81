package scenario

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Options say what to look for.
type RecorderOptions struct {
	// Methods are the auth methods of login tokens, with what a token of theirs is:
	// invariant.ServiceToken or invariant.ClientToken. Services are names in Consul.
	Methods  map[string]chaos.What
	Services []string
	// Serving are the names of the containers without which a task cannot serve, by
	// task; Healthy those of them whose ECS health counts, too.
	Serving, Healthy map[string][]string
	// Stays reports whether something of a task that has stopped will stay.
	Stays func(task string, what chaos.What) bool
}

// Recorder is the Progress of one run, and observes what no event reports. Its methods may
// be called by several goroutines.
type Recorder struct {
	Progress
	options RecorderOptions

	mu       sync.Mutex
	begun    time.Time // of the schedule
	healed   time.Time
	names    []string // in the order of their start
	tasks    map[string]*recordedTask
	requests []Request
	turns    []turn
	states   []state
	left     map[leftKey]*leftover
	lags     []lag
}

// task is what is known of one.
type recordedTask struct {
	id, address            string
	started, term, stopped time.Time
	inTraffic              bool
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

// New makes a recorder whose events go on to out.
func NewRecorder(out Progress, o RecorderOptions) *Recorder {
	return &Recorder{Progress: out, options: o, tasks: map[string]*recordedTask{}, left: map[leftKey]*leftover{}}
}

// Event notes an event and passes it on.
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
		r.begun = e.Time
	case KindTrafficEnd:
		r.healed = e.Time
	case view.KindDesired:
		r.tasks[e.Task].term = e.Time
	case view.KindStatus, view.KindHealth:
		if e.Container == "" && e.Status == scheduler.StatusStopped {
			r.tasks[e.Task].stopped = e.Time
		}
		r.noteState(e)
	}
}

// noteState notes what a container can do.
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

// Request notes one of the traffic.
func (r *Recorder) Request(q Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
}

// Watch follows what Consul knows until ctx ends, with the management client of a
// server that is ready.
func (r *Recorder) Watch(ctx context.Context, client *api.Client) {
	var all sync.WaitGroup
	defer all.Wait()
	var watch *Watcher
	watch = NewWatcher(client, func(at time.Time, _ *api.HealthCheck, _ string) {
		checks, _ := watch.Now()
		r.noteTraffic(at, checks)
	})
	all.Go(func() { watch.Run(ctx) })
	all.Go(func() { r.beat(ctx) })
	r.watchLeft(ctx, client)
}

// noteTraffic notes which tasks Consul sends traffic to from now on.
func (r *Recorder) noteTraffic(at time.Time, checks Checks) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		t := r.tasks[name]
		if in := checks.InTraffic(t.id); in != t.inTraffic {
			t.inTraffic = in
			r.turns = append(r.turns, turn{at, name, in})
		}
	}
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
