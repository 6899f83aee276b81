package healthsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// goneAfter is how long an agent that refuses connections is asked again.
	goneAfter = 5 * time.Second
	// settle is how long after critical was written it is written again, when
	// a passing write was cut off shortly before (see unsettledFor).
	settle = time.Second
	// unknownTaskLimit bounds the attempt to learn, after SIGTERM, which
	// checks there are.
	unknownTaskLimit = 5 * time.Second
)

// drain takes the task out of traffic: critical for all checks, then the
// logouts, inside the stop timeout. It knows no other status than critical, and
// nothing runs after it.
func (s *syncer) drain(ended context.Context) error {
	start, budget := time.Now(), workload.NewStopBudget(s.stop)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	criticals := budget.HealthSync
	if s.cfg.ConsulLogin.Enabled {
		criticals = budget.Criticals
	}
	err := s.latchCritical(ctx, criticals)
	s.awaitApplications(ctx, budget.ServiceLogout-time.Since(start))
	s.logOutAll(ctx)
	return err
}

// latchCritical writes critical for every check, all at once, within limit.
func (s *syncer) latchCritical(ctx context.Context, limit time.Duration) error {
	if !s.wanted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !s.reloadToken() {
		// Nothing was registered, or nothing of us ever made it passing.
		s.Log.Info("no service token, so no check is passing")
		return nil
	}
	if !s.known {
		if err := s.learn(ctx, unknownTaskLimit); err != nil {
			return fmt.Errorf("stopped before the checks were known; they end with their ttl: %w", err)
		}
	}
	errs := make([]error, len(s.w.SyncChecks))
	gone := make([]bool, len(s.w.SyncChecks))
	var wg sync.WaitGroup
	for i, check := range s.w.SyncChecks {
		wg.Go(func() { gone[i], errs[i] = s.writeCritical(ctx, check) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	switch {
	case slices.Contains(gone, true):
		err = errors.Join(err, s.deregister(ctx))
	case err == nil:
		s.Log.Info("left all checks critical", logkey.Checks, len(errs))
	}
	return err
}

// deregister takes the services of an agent that is gone out of the catalog. One
// that left has done so, one that died has not; and client-entrypoint leaves the
// services of one that ECS may restart, which ECS does not do once the task stops.
func (s *syncer) deregister(ctx context.Context) error {
	err := errors.New("consulHTTPAddr is not set, so the servers cannot be asked")
	if s.cfg.ConsulHTTPAddr != "" {
		err = refusal(retry.Do(ctx, retry.Remote(), s.Log, "deregister services", s.Classify, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			return s.Deregister(ctx, s.token, s.w)
		}))
	}
	if err != nil {
		return fmt.Errorf("agent is gone, and its services may still be passing in Consul: %w", err)
	}
	s.Log.Info("agent is gone, deregistered the services at the servers", logkey.ServiceID, s.w.ID)
	return nil
}

// writeCritical writes one check with retries. gone reports that there is no
// agent any more.
func (s *syncer) writeCritical(ctx context.Context, check workload.SyncCheck) (gone bool, err error) {
	attempt := &criticalWrite{syncer: s, change: change{check: check, seen: stopping}}
	unsettled := time.Now().Before(s.unsettled[check.ID])
	if err = attempt.untilDone(ctx); err == nil && unsettled && !attempt.gone {
		select {
		case <-time.After(settle):
			err = attempt.untilDone(ctx)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return false, fmt.Errorf("write critical for check %q: %w", check.ID, err)
	}
	return attempt.gone, nil
}

// criticalWrite is the last write of one check.
type criticalWrite struct {
	*syncer
	change  change
	refused time.Time // since when the agent refuses connections
	gone    bool
}

func (w *criticalWrite) untilDone(ctx context.Context) error {
	log := w.Log.With(logkey.CheckID, w.change.check.ID)
	err := retry.Do(ctx, retry.LocalAgent(), log, "write critical", w.classify, w.once)
	if w.gone = errors.Is(err, errAgentGone); w.gone {
		return nil
	}
	return refusal(err)
}

// errAgentGone ends the attempts to write to an agent that has left or died.
var errAgentGone = errors.New("agent is gone")

func (w *criticalWrite) classify(err error) retry.Class {
	if errors.Is(err, errAgentGone) {
		return retry.Gone
	}
	return w.Classify(err)
}

// refusal takes the mark off an error that no retry can mend: any check that may
// be passing ends in the same exit code, whether Consul refused the write or did
// not answer.
func refusal(err error) error {
	var permanent *retry.PermanentError
	if errors.As(err, &permanent) {
		return permanent.Err
	}
	return err
}

func (w *criticalWrite) once(ctx context.Context) error {
	err := w.write(ctx, w.change)
	switch {
	case err == nil:
		return nil
	case w.Classify(err) == retry.Gone:
		// No check and no service, not even now: nothing can take traffic.
		return nil
	case !refused(err):
		w.refused = time.Time{}
	case w.refused.IsZero():
		w.refused = time.Now()
	case time.Since(w.refused) >= goneAfter:
		return errAgentGone
	}
	return err
}

// refused reports that no process listens at the agent's address or socket.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}
