package healthsync

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
)

// readBackRepeat is the time between two attempts after the last one has failed.
const readBackRepeat = 10 * time.Second

// readBackTimes returns how long after a write the checks are read, and what differs is
// written again.
func readBackTimes() []time.Duration {
	return []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second, 10 * time.Second}
}

// readBacks are the times at which the checks are read after a write that met a failure: a
// server that was paused, or an agent, may apply an earlier write after a later one.
type readBacks struct {
	// unanswered reports that since the last successful write one was not answered.
	unanswered bool
	due        []time.Time
}

// ambiguous reports whether an earlier write may yet be applied.
func (r *readBacks) ambiguous() bool { return r.unanswered || len(r.due) > 0 }

// wrote schedules reads after a successful write.
func (r *readBacks) wrote(now time.Time) {
	if !r.ambiguous() {
		return
	}
	r.unanswered, r.due = false, nil
	for _, after := range readBackTimes() {
		r.due = append(r.due, now.Add(after))
	}
}

// next reports whether the checks are to be read now, and drops the times that have come.
func (r *readBacks) next(now time.Time) bool {
	come := false
	for len(r.due) > 0 && !now.Before(r.due[0]) {
		r.due, come = r.due[1:], true
	}
	return come
}

// failed records that the checks could not be read: after the last time there is another one.
func (r *readBacks) failed(now time.Time) {
	if len(r.due) == 0 {
		r.due = append(r.due, now.Add(readBackRepeat))
	}
}

// readBackBeside keeps the task out of traffic after its last write, in a goroutine that stop
// ends. With an agent that takes a write without an answer before; a catalog is written by
// other servers than that which answered, too.
func (w *checkWriter) readBackBeside(ctx context.Context) (stop func()) {
	if !w.task.known || !w.task.checked() || w.task.leavesEarly() ||
		!w.options.Config.Agentless() && !w.readBacks.ambiguous() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var updates []registrar.Update
	for _, check := range w.task.workload.SyncChecks {
		u := w.critical(check).update()
		u.Refresh, u.ReadBack = true, true
		updates = append(updates, u)
	}
	token, start := w.token.secret, time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, after := range readBackTimes() {
			if retry.Sleep(ctx, time.Until(start.Add(after))) != nil {
				return
			}
			limited, cancel := context.WithTimeout(ctx, writeTimeout)
			w.deps.Registrar.Set(limited, token, w.task.workload, updates)
			cancel()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
