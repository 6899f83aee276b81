package healthsync

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// loop makes the first pass at once and one at every tick until ctx ends.
func (s *syncer) loop(ctx context.Context) {
	if len(s.task.workload.SyncChecks) == 0 {
		s.publish(ctx)
		<-ctx.Done()
		return
	}
	s.synchronize(ctx, s.task.first.Containers)
	s.task.first.Containers = nil
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
			s.synchronize(ctx, task.Containers)
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
	if !s.metadataFailed {
		task, err := s.task.fetch(ctx)
		if ctx.Err() == nil {
			s.recordFetch(err)
		}
		return task, err
	}
	type answer struct {
		task workload.Task
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with fetchTimeout
		task, err := s.task.fetch(ctx)
		read <- answer{task, err}
	}()
	tick := time.NewTicker(tick)
	defer tick.Stop()
	for {
		select {
		case a := <-read:
			if ctx.Err() == nil {
				s.recordFetch(a.err)
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
	_ = retry.Do(ctx, policy, s.task.log, "publish the proxy's health", retry.Always, func(ctx context.Context) error {
		s.token.reload()
		return s.deps.Publish(ctx, s.token.secret, s.task.workload)
	})
}

// recordFetch logs the loss and the return of the metadata, not every tick
// between.
func (s *syncer) recordFetch(err error) {
	switch {
	case err != nil && !s.metadataFailed:
		s.task.log.Warn("task metadata unreadable, checks keep their status while the task's ports accept connections",
			logkey.Error, err)
	case err != nil:
		s.task.log.Debug("task metadata still unreadable", logkey.Error, err)
	case s.metadataFailed:
		s.task.log.Info("task metadata readable again")
	}
	if s.metadataFailed = err != nil; !s.metadataFailed {
		s.evidence.endOutage()
		s.vouched.Store(true)
	}
}

// synchronize brings the checks in line with a valid metadata answer.
func (s *syncer) synchronize(ctx context.Context, containers []workload.Container) {
	serving := s.startup.serving(ctx, containers)
	now := time.Now()
	s.logHopeless(now, containers, serving)
	s.checks.logReasons(now, containers, serving)
	refresh, readBack := s.checks.refresh(now)
	changes := diff(now, refresh, s.task.workload.SyncChecks, containers, serving, s.checks.last)
	s.checks.dropReverted(now, changes)
	s.checks.apply(ctx, now, readBack, changes)
	s.evidence.prepare(ctx, s.checks.last)
}

// absentLimit is how long the metadata may lack a container that ECS is still to create.
const absentLimit = 30 * time.Second

// logHopeless logs once for each container whose check in Consul never passes: it has no health check, or the task has
// no such container.
func (s *syncer) logHopeless(now time.Time, containers []workload.Container, serving map[string]bool) {
	for _, check := range s.task.workload.SyncChecks {
		name := check.Container
		if check.Aggregate || s.hopeless[name] {
			continue
		}
		reason := ""
		switch observe(containers, name, serving) {
		case unchecked:
			reason = unchecked.output(name)
		case missing:
			if since, known := s.absent[name]; !known {
				s.absent[name] = now
			} else if now.Sub(since) >= absentLimit {
				reason = missing.output(name) + ": correct healthSyncContainers, the task has " + namesOf(containers)
			}
		default:
			delete(s.absent, name)
		}
		if reason != "" {
			s.hopeless[name] = true
			s.task.log.Warn("service stays critical in Consul", logkey.Container, name, logkey.Reason, reason)
		}
	}
}

// namesOf returns the names of the containers in a sentence.
func namesOf(containers []workload.Container) string {
	names := make([]string, len(containers))
	for i, c := range containers {
		names[i] = c.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// holdSession keeps the session that the checks depend on in a goroutine that ends with ctx:
// its renewals wait neither for the reads of checks nor for the writes.
func (s *syncer) holdSession(ctx context.Context) {
	holder, ok := s.deps.Registrar.(registrar.SessionHolder)
	if !ok || !s.task.checked() {
		return
	}
	token, renewal := s.token.secret, s.token.renewal
	credentials := func() (string, bool) {
		if renewal != nil {
			token = renewal.Current()
		}
		return token, s.vouched.Load()
	}
	s.holding = holder.Hold(ctx, s.task.log, credentials, s.task.workload)
}
