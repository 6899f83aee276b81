package healthsync

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// loop makes the first pass at once and one at every tick until ctx ends.
func (s *syncer) loop(ctx context.Context) {
	if len(s.w.SyncChecks) == 0 {
		s.publish(ctx)
		<-ctx.Done()
		return
	}
	s.pass(ctx, s.first.Containers)
	s.first = workload.Task{}
	pause := s.startup.pause()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		task, err := s.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.pass(ctx, task.Containers)
		}
		if next := s.startup.pause(); next != pause {
			pause = next
			tick.Reset(pause)
		}
	}
}

// look reads the metadata. While that fails, the task's ports are looked at beside it: an
// endpoint that hangs must not hide a container that ends.
func (s *syncer) look(ctx context.Context) (workload.Task, error) {
	if !s.blind {
		task, err := s.fetch(ctx)
		if ctx.Err() == nil {
			s.noteFetch(err)
		}
		return task, err
	}
	type answer struct {
		task workload.Task
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with fetchTimeout
		task, err := s.fetch(ctx)
		read <- answer{task, err}
	}()
	tick := time.NewTicker(tick)
	defer tick.Stop()
	for {
		select {
		case a := <-read:
			if ctx.Err() == nil {
				s.noteFetch(a.err)
			}
			if a.err != nil {
				s.withoutMetadata(ctx)
			}
			return a.task, a.err
		case <-tick.C:
			s.withoutMetadata(ctx)
		}
	}
}

// publish makes the agent send to the servers that the proxy of a task without checks is
// ready, when it is: an agent that has just started might do so 15 s later and more. The
// attempts end with ctx.
func (s *syncer) publish(ctx context.Context) {
	policy := retry.Policy{Base: retryPause, Max: retryPauseMax}
	_ = retry.Do(ctx, policy, s.Log, "publish the proxy's health", retry.Always, func(ctx context.Context) error {
		s.reloadToken()
		return s.Publish(ctx, s.token, s.w)
	})
}

// noteFetch logs the loss and the return of the metadata, not every tick
// between.
func (s *syncer) noteFetch(err error) {
	switch {
	case err != nil && !s.blind:
		s.Log.Warn("task metadata unreadable, checks keep their status while the task's ports accept connections",
			logkey.Error, err)
	case err != nil:
		s.Log.Debug("task metadata still unreadable", logkey.Error, err)
	case s.blind:
		s.Log.Info("task metadata readable again")
	}
	if s.blind = err != nil; !s.blind {
		s.evidence.end()
		s.vouched.Store(true)
	}
}

// pass brings the checks in line with a valid metadata answer.
func (s *syncer) pass(ctx context.Context, containers []workload.Container) {
	serving := s.startup.serving(ctx, containers)
	s.noteUnchecked(containers, serving)
	now, refresh := time.Now(), s.Registrar.Refresh()
	readBack := s.readBacks.next(now)
	if readBack {
		refresh = 0
	}
	changes := diff(now, refresh, s.w.SyncChecks, containers, serving, s.last)
	for i := range changes {
		changes[i].readBack = readBack && changes[i].refresh
	}
	s.forgetReverted(now, changes)
	s.apply(ctx, now, changes)
	s.evidence.prepare(ctx, s.last)
}

// noteUnchecked logs once for each container that it has no health check: its check in Consul
// never passes.
func (s *syncer) noteUnchecked(containers []workload.Container, serving map[string]bool) {
	for _, check := range s.w.SyncChecks {
		name := check.Container
		if check.Aggregate || s.unchecked[name] || observe(containers, name, serving) != unchecked {
			continue
		}
		s.unchecked[name] = true
		s.Log.Warn("service stays critical in Consul", logkey.Container, name, logkey.Reason, unchecked.output(name))
	}
}

// forgetReverted drops failed writes of statuses that have gone again, which may yet be
// applied.
func (s *syncer) forgetReverted(now time.Time, changes []change) {
	for id, failed := range s.failing {
		changed := slices.ContainsFunc(changes, func(c change) bool { return c.check.ID == id && !c.refresh })
		if failed.change.refresh || changed {
			continue
		}
		delete(s.failing, id)
		s.readBacks.wrote(now)
	}
}

// apply makes the changes, unless they wait for the end of a pause after a failure.
func (s *syncer) apply(ctx context.Context, now time.Time, changes []change) {
	if len(changes) == 0 {
		return
	}
	if s.pacer.holds(now, changes) {
		s.postpone(changes)
		return
	}
	s.reloadToken() // a login may have replaced it
	results := s.write(ctx, changes...)
	s.pace(now, changes, results)
	for i, result := range results {
		s.record(ctx, now, changes[i], result)
		s.noteUnbound(result.Unbound)
	}
}

// postpone notes the statuses that wait for the end of a pause: they are to be written, also
// when the metadata are lost meanwhile.
func (s *syncer) postpone(changes []change) {
	for _, c := range changes {
		if !c.refresh {
			s.failing[c.check.ID] = failure{s.failing[c.check.ID].class, c}
		}
	}
}

// pace decides when to read the checks back, and when to repeat what has failed. Without an
// agent nothing expires that a refresh keeps, so one that failed waits for the next.
func (s *syncer) pace(now time.Time, changes []change, results []registrar.Result) {
	again, wrote := false, false
	for i, result := range results {
		c := changes[i]
		if result.Unsure {
			s.readBacks.doubt = true
		}
		if c.readBack && result.Err != nil {
			s.readBacks.failed(now)
		}
		switch {
		case result.Err == nil:
			wrote = wrote || !c.refresh
		case c.refresh && s.Config.Agentless():
			s.last[c.check.ID] = written{container: c.container, observed: c.previous, at: now}
		default:
			again = true
		}
	}
	s.pacer.note(now, changes, again)
	if wrote || !again && s.readBacks.doubt {
		s.readBacks.wrote(time.Now())
	}
}

// write makes the changes, and has a result for each.
func (s *syncer) write(ctx context.Context, changes ...change) []registrar.Result {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	updates := make([]registrar.Update, len(changes))
	for i, c := range changes {
		updates[i] = c.update()
	}
	return s.Registrar.Set(ctx, s.token, s.w, updates)
}

// noteUnbound logs once why checks would outlive this process, and when they no longer
// do.
func (s *syncer) noteUnbound(why error) {
	reason := ""
	if why != nil {
		reason = why.Error()
	}
	switch {
	case reason == s.unbound:
		return
	case reason != "":
		s.Log.Warn("checks keep their status if health-sync dies, until the controller removes the task", logkey.Reason, reason)
	default:
		s.Log.Info("checks become critical if health-sync dies")
	}
	s.unbound = reason
}

// record remembers the outcome of a write. A failed one is not remembered, so
// the next diff asks for it again; it is logged when it starts to fail, when
// the kind of failure changes, every 10 s while it lasts, and when it works again.
func (s *syncer) record(ctx context.Context, now time.Time, c change, result registrar.Result) {
	id := c.check.ID
	if result.Err != nil {
		s.recordFailure(ctx, c, result.Err)
		return
	}
	if result.Restored {
		s.Log.Warn("consul had lost the check, registered it again", logkey.CheckID, id)
	}
	if _, failed := s.failing[id]; failed {
		s.Log.Info("check write works again", logkey.CheckID, id)
		delete(s.failing, id)
	}
	before := s.last[id]
	s.last[id] = written{container: c.container, observed: c.observed, at: now}
	text := "check status changed"
	if c.refresh {
		if before.container == c.container && before.observed == c.observed {
			return
		}
		text = "check output changed"
	}
	log := s.Log.With(logkey.CheckID, id, logkey.Container, c.container)
	if !c.first { // otherwise only Consul knows
		log = log.With(logkey.Previous, c.previous.status())
	}
	log.Info(text, logkey.Status, c.observed.status(), logkey.Reason, c.observed.output(c.container))
}

func (s *syncer) recordFailure(ctx context.Context, c change, err error) {
	id := c.check.ID
	class := consulutil.Classify(err)
	if ctx.Err() != nil {
		return // cut off by the signal, which is no failure
	}
	if s.renewal != nil && consulutil.UnknownToken(err) {
		s.renewal.Refused()
	}
	level := s.causes.Level(err)
	if before, failing := s.failing[id]; !failing || before.class != class {
		level = hclog.Warn
	}
	s.Log.Log(level, "check write failed, trying again",
		logkey.CheckID, id, logkey.Status, c.observed.status(), logkey.Error, err)
	s.failing[id] = failure{class, c}
}
