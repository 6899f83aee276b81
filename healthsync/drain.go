package healthsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// settle is how long after the last write it is made again, when an earlier one was
	// not answered shortly before.
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
	s.awaitRegistration()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	leave, wait := s.leaveAgent, budget.ServiceLogout
	if s.Config.Agentless() {
		leave, wait = s.leaveServers, budget.Deregister
	}
	if s.Config.Gateway != nil {
		wait = min(wait, budget.Gateway)
	}
	return leave(ctx, budget, start.Add(wait))
}

// leaveAgent is the end of a task with an agent, whose services end with the agent. The
// service token stays for the last requests of the applications, or of a gateway's callers,
// until end, if the agent outlives them, which only client-entrypoint promises.
func (s *syncer) leaveAgent(ctx context.Context, budget workload.StopBudget, end time.Time) error {
	limit := budget.HealthSync
	if s.login {
		limit = budget.Criticals
	}
	err := s.latchCritical(ctx, limit)
	stop := s.readBackBeside(ctx)
	clientEnded := false
	if s.login && s.agentOwned() {
		s.await(ctx, end, tokenNeeded, func(t workload.Task) []workload.Container {
			if clientEnded = t.Ended(workload.ContainerConsulClient); clientEnded || !s.agentOwned() {
				return nil
			}
			users := t.Applications(s.Ignore)
			if s.Config.Gateway != nil {
				users = append(users, t.Proxies()...)
			}
			return users
		})
	}
	stop()
	s.logOutAll(ctx, clientEnded || !s.agentOwned())
	return err
}

// leaveServers is the end of a task without an agent. Its services stay in the servers'
// catalog until its proxy has stopped, or until end, unless it is a mesh gateway, which is
// deregistered before.
func (s *syncer) leaveServers(ctx context.Context, budget workload.StopBudget, end time.Time) error {
	err := s.latchCritical(ctx, budget.Criticals)
	stop := s.readBackBeside(ctx)
	why := "they are deregistered after their last requests"
	if s.leavesEarly() {
		why = tokenNeeded
	}
	s.await(ctx, end, why, func(t workload.Task) []workload.Container {
		return append(t.Applications(s.Ignore), t.Proxies()...)
	})
	stop()
	if s.holding != nil {
		<-s.holding // it ended with TERM, and Deregister destroys its session
	}
	if s.known && (err != nil || !s.leavesEarly()) {
		const failure = "deregister services, which stay in Consul until the controller removes them"
		base := time.Second
		if err != nil { // the servers have failed until now: few attempts are left
			base = remaining(ctx)
		}
		err = errors.Join(err, s.deregister(ctx, failure, sparing(base, remaining(ctx), func(ctx context.Context) error {
			return s.Registrar.Deregister(ctx, s.token, s.w)
		})))
	}
	s.logOutAll(ctx, false)
	return err
}

// latchCritical writes critical for every check, or deregisters a gateway that has none or
// leaves early, within limit.
func (s *syncer) latchCritical(ctx context.Context, limit time.Duration) error {
	if !s.checked() && s.Config.Gateway == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := s.readToken(workload.FileServiceToken); errors.Is(err, errNoToken) && s.token == "" && s.mayLogIn() {
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
	err := s.leaveTraffic(ctx)
	switch {
	case errors.Is(err, errAgentGone):
		return s.deregisterGone(ctx)
	case consulutil.UnknownToken(err) && s.renewal != nil && !s.separate:
		if s.logInAtTheEnd(ctx) {
			return s.leaveTraffic(ctx)
		}
	}
	return err
}

// leaveTraffic makes the last write, and with an agent, or for a gateway, again a moment later
// if one may yet be applied that puts the task into traffic. Checks in the catalog are read
// back in the meantime before the task is deregistered.
func (s *syncer) leaveTraffic(ctx context.Context) error {
	write, success := s.writeCritical, "left all checks critical"
	byChecks := s.checked() && !s.leavesEarly()
	if !byChecks { // a gateway
		write, success = s.deregisterGateway, "deregistered the gateway"
	}
	doubtful := s.readBacks.doubtful() && !(byChecks && s.Config.Agentless())
	err := write(ctx)
	if doubtful && !errors.Is(err, errAgentGone) && retry.Sleep(ctx, settle) == nil {
		err = write(ctx)
	}
	if err == nil {
		s.Log.Info(success, logkey.Checks, len(s.w.SyncChecks), logkey.ServiceID, s.w.ID)
	}
	return err
}

// deregisterGone takes the services of an agent that is gone out of the servers' catalog. An
// agent that left has done so, one that died has not; and client-entrypoint leaves the
// services of one that ECS may restart, which ECS does not do once the task stops.
func (s *syncer) deregisterGone(ctx context.Context) error {
	const failure = "agent is gone, and its services may still be passing in Consul"
	if s.Config.ConsulHTTPAddr == "" {
		return errors.New(failure + ": consulHTTPAddr is not set, so the servers cannot be queried")
	}
	return s.deregister(ctx, failure, func(ctx context.Context) error { return s.DeregisterAtServers(ctx, s.token, s.w) })
}

// deregister takes the services out of the servers' catalog. An error of it begins with
// failure.
func (s *syncer) deregister(ctx context.Context, failure string, remove func(context.Context) error) error {
	err := refusal(retry.Do(ctx, retry.Remote(), s.Log, "deregister services", consulutil.Classify, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return remove(ctx)
	}))
	if err != nil {
		return fmt.Errorf("%s: %w", failure, err)
	}
	s.Log.Info("deregistered the services at the servers", logkey.ServiceID, s.w.ID)
	return nil
}

// critical returns the last change of a check.
func (s *syncer) critical(check workload.SyncCheck) change {
	return change{check: check, container: cmp.Or(s.last[check.ID].container, check.Container), observed: stopping}
}

// writeCritical writes critical for all checks. It repeats those that Consul has not taken, and
// beside them those that an agent may yet make passing.
func (s *syncer) writeCritical(ctx context.Context) error {
	var changes []change
	for _, check := range s.w.SyncChecks {
		changes = append(changes, s.critical(check))
	}
	var refusals []error
	doubtful := s.readBacks.doubtful() && !s.Config.Agentless()
	err := s.lastWrite(ctx, "write critical", func(ctx context.Context) error {
		var repeats []change
		var errs []error
		for i, result := range s.write(ctx, changes...) {
			switch class := consulutil.Classify(result.Err); {
			case result.Err == nil, class == retry.Gone:
				// Gone: no check and no service, not even now. Nothing can take traffic.
				if doubtful {
					repeats = append(repeats, changes[i])
				}
			case class == retry.Permanent:
				refusals = append(refusals, result.Err)
			default:
				repeats, errs = append(repeats, changes[i]), append(errs, result.Err)
			}
		}
		changes = repeats
		return errors.Join(errs...)
	})
	return errors.Join(append(refusals, err)...)
}

// lastWrite repeats a write until Consul has taken it, or refuses it. Its error is
// errAgentGone when an agent has refused connections for long enough.
func (s *syncer) lastWrite(ctx context.Context, what string, write func(context.Context) error) error {
	if s.Config.Agentless() {
		write = sparing(time.Second, remaining(ctx)/3, write)
	}
	var since time.Time // of the agent's refusals in a row
	err := refusal(retry.Do(ctx, retry.LocalAgent(), s.Log, what, consulutil.Classify, func(ctx context.Context) error {
		err := write(ctx)
		switch {
		case !refused(err) || s.Config.Agentless():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= goneAfter:
			return errAgentGone
		}
		return err
	}))
	if err != nil {
		return fmt.Errorf("%s %q: %w", what, s.w.ID, err)
	}
	return nil
}

// sparing returns fn with pauses that double: all tasks that end write to the same servers.
func sparing(base, longest time.Duration, fn func(context.Context) error) func(context.Context) error {
	pauses := retry.Backoff{Base: base, Max: max(base, longest)}
	return func(ctx context.Context) error {
		err := fn(ctx)
		if err != nil {
			return &retry.DelayError{Err: err, Delay: pauses.Next()}
		}
		return nil
	}
}

// remaining returns the time until the deadline of ctx, which must have one.
func remaining(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return max(time.Second, time.Until(deadline))
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

// refused reports that no process listens at the agent's address or socket.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}
