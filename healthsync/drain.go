package healthsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
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

// drain takes the task out of traffic by critical checks or the gateway's deregistration,
// then come the logouts, inside the stop timeout. It knows no other status than critical, and
// nothing runs after it.
func (s *syncer) drain(ended context.Context) error {
	start, budget := time.Now(), workload.NewStopBudget(s.StopTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	criticals := budget.HealthSync
	if s.login || s.AtServers {
		criticals = budget.Criticals
	}
	err := s.latchCritical(ctx, criticals)
	limit := budget.HealthSyncWait(!s.AtServers)
	if s.Config.Gateway != nil {
		limit = min(limit, budget.Gateway)
	}
	clientEnded := s.awaitApplications(ctx, limit-time.Since(start))
	if s.AtServers && s.known && (err != nil || !leavesEarly(s.Config.Gateway)) {
		err = errors.Join(err, s.deregister(ctx))
	}
	s.logOutAll(ctx, clientEnded)
	return err
}

// latchCritical writes critical for every check, all at once, or deregisters a gateway that
// has none or leaves early, within limit.
func (s *syncer) latchCritical(ctx context.Context, limit time.Duration) error {
	if !s.wanted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := s.readToken(workload.FileServiceToken); noToken(err) && s.token == "" && s.mayLogIn() {
		if err := s.logInSeparately(ctx, unknownTaskLimit, err); err != nil { // TERM came before the login
			return err
		}
	}
	if !s.reloadToken() {
		// Nothing was registered, or nothing of us ever made it passing.
		s.Log.Info("no service token, so no check is passing")
		return nil
	}
	if !s.known {
		if err := s.learn(ctx, unknownTaskLimit); err != nil {
			return fmt.Errorf("stopped before the task's services were known, which may still be passing: %w", err)
		}
	}
	writes := s.criticalWrites()
	errs := make([]error, len(writes))
	checks := 0
	var wg sync.WaitGroup
	for i, write := range writes {
		checks += len(write.ids)
		wg.Go(func() { errs[i] = write.settled(ctx) })
	}
	wg.Wait()
	gone := func(err error) bool { return errors.Is(err, errAgentGone) }
	if slices.ContainsFunc(errs, gone) {
		return errors.Join(append(slices.DeleteFunc(errs, gone), s.deregister(ctx))...)
	}
	err := errors.Join(errs...)
	switch {
	case err != nil:
	case s.deregistersFirst():
		s.Log.Info("deregistered the gateway", logkey.ServiceID, s.w.ID)
	default:
		s.Log.Info("left all checks critical", logkey.Checks, checks)
	}
	return err
}

// deregister takes the services out of the servers' catalog: those of a task without an
// agent, and those of an agent that is gone. An agent that left has done so, one that
// died has not; and client-entrypoint leaves the services of one that ECS may restart,
// which ECS does not do once the task stops.
func (s *syncer) deregister(ctx context.Context) error {
	remove, failed := s.DeregisterAtServers, "agent is gone, and its services may still be passing in Consul"
	switch {
	case s.AtServers:
		remove, failed = s.Registrar.Deregister, "deregister services, which stay in Consul until the controller removes them"
	case s.Config.ConsulHTTPAddr == "":
		return fmt.Errorf("%s: consulHTTPAddr is not set, so the servers cannot be queried", failed)
	}
	err := refusal(retry.Do(ctx, retry.Remote(), s.Log, "deregister services", consulutil.Classify, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return remove(ctx, s.token, s.w)
	}))
	if err != nil {
		return fmt.Errorf("%s: %w", failed, err)
	}
	s.Log.Info("deregistered the services at the servers", logkey.ServiceID, s.w.ID)
	return nil
}

// criticalWrites are one for each check, for a gateway that leaves by it its deregistration,
// and without an agent one for all checks, since they are in one place.
func (s *syncer) criticalWrites() []*criticalWrite {
	if s.deregistersFirst() {
		w := &criticalWrite{syncer: s, what: "deregister gateway", ids: []string{s.w.ID}, put: s.deregisterGateway}
		for _, check := range s.w.SyncChecks { // a passing write may register it again
			w.ids = append(w.ids, check.ID)
		}
		return []*criticalWrite{w}
	}
	checks := slices.Collect(slices.Chunk(s.w.SyncChecks, 1))
	if s.AtServers {
		checks = [][]workload.SyncCheck{s.w.SyncChecks}
	}
	var writes []*criticalWrite
	for _, together := range checks {
		w := &criticalWrite{syncer: s, what: "write critical"}
		var changes []change
		for _, check := range together {
			w.ids = append(w.ids, check.ID)
			changes = append(changes, change{check: check, container: cmp.Or(s.last[check.ID].container, check.Container), observed: stopping})
		}
		w.put = func(ctx context.Context) error {
			var errs []error
			for _, result := range s.write(ctx, changes...) {
				errs = append(errs, result.Err)
			}
			return cmp.Or(errs...)
		}
		writes = append(writes, w)
	}
	return writes
}

// criticalWrite is the last write of checks or of a gateway.
type criticalWrite struct {
	*syncer
	what    string   // in errors and log lines
	ids     []string // of the checks, after the gateway's if that is deregistered
	put     func(context.Context) error
	refused time.Time // since when the agent refuses connections
}

// settled writes with retries.
func (w *criticalWrite) settled(ctx context.Context) error {
	unsettled := slices.ContainsFunc(w.ids, func(id string) bool { return time.Now().Before(w.unsettled[id]) })
	err := w.untilDone(ctx)
	if err == nil && unsettled && retry.Sleep(ctx, settle) == nil {
		err = w.untilDone(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", w.what, w.ids, err)
	}
	return nil
}

func (w *criticalWrite) untilDone(ctx context.Context) error {
	log := w.Log.With(logkey.CheckID, w.ids)
	return refusal(retry.Do(ctx, retry.LocalAgent(), log, w.what, consulutil.Classify, w.once))
}

// errAgentGone ends the attempts to write to an agent that has left or died.
var errAgentGone = consulutil.WithClass(errors.New("agent is gone"), retry.Gone)

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
	err := w.put(ctx)
	switch {
	case err == nil:
		return nil
	case consulutil.Classify(err) == retry.Gone:
		// No check and no service, not even now: nothing can take traffic.
		return nil
	case !refused(err) || w.AtServers:
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
