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
	// doubt reports that since the last successful write one was not answered.
	doubt bool
	due   []time.Time
}

// doubtful reports whether an earlier write may yet be applied.
func (r *readBacks) doubtful() bool { return r.doubt || len(r.due) > 0 }

// wrote notes a successful write.
func (r *readBacks) wrote(now time.Time) {
	if !r.doubtful() {
		return
	}
	r.doubt, r.due = false, nil
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

// failed notes that the checks could not be read: after the last time there is another one.
func (r *readBacks) failed(now time.Time) {
	if len(r.due) == 0 {
		r.due = append(r.due, now.Add(readBackRepeat))
	}
}

// readBackBeside keeps the task out of traffic after its last write, in a goroutine that stop
// ends. With an agent that takes a write without an answer before; a catalog is written by
// other servers than that which answered, too.
func (s *syncer) readBackBeside(ctx context.Context) (stop func()) {
	if !s.known || !s.checked() || s.leavesEarly() || !s.Config.Agentless() && !s.readBacks.doubtful() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var updates []registrar.Update
	for _, check := range s.w.SyncChecks {
		u := s.critical(check).update()
		u.Refresh, u.ReadBack = true, true
		updates = append(updates, u)
	}
	token, start := s.token, time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, after := range readBackTimes() {
			if retry.Sleep(ctx, time.Until(start.Add(after))) != nil {
				return
			}
			limited, cancel := context.WithTimeout(ctx, writeTimeout)
			s.Registrar.Set(limited, token, s.w, updates)
			cancel()
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
