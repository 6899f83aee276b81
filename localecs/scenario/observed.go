package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Observed is the record until now, in the schedule's time: from the beginning of
// the traffic.
func (r *Recorder) Observed(now time.Time) chaos.Observed {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := chaos.Observed{Healed: r.since(r.healed), Ended: r.since(now)}
	if r.begun.IsZero() { // it has not come so far
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

// since is a time of the schedule; one that has not come is Never.
func (r *Recorder) since(at time.Time) time.Duration {
	if at.IsZero() {
		return chaos.Never
	}
	return at.Sub(r.begun)
}
