package healthsync

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// goneAfter is how long an agent that refuses connections is asked again.
	goneAfter = 5 * time.Second
	// repeatDelay is how long after the last write it is made again, when an earlier one was
	// not answered shortly before.
	repeatDelay = time.Second
	// unknownTaskLimit bounds the attempt to learn, after SIGTERM, which
	// checks there are.
	unknownTaskLimit = 5 * time.Second
)

// drain takes the task out of traffic by critical checks or the gateway's deregistration,
// then come the logouts, inside the stop timeout. It knows no other status than critical, and
// nothing runs after it.
func (s *syncer) drain(ended context.Context) error {
	start, budget := time.Now(), workload.NewStopBudget(s.options.StopTimeout)
	s.awaitRegistration()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	leave, wait := s.leaveAgent, budget.ServiceLogout
	if s.options.Config.Agentless() {
		leave, wait = s.leaveServers, budget.Deregister
	}
	if s.options.Config.Gateway != nil {
		wait = min(wait, budget.Gateway)
	}
	return leave(ctx, budget, start.Add(wait))
}

// leaveAgent ends a task with an agent, whose services end with the agent. The
// service token stays for the last requests of the applications, or of a gateway's callers,
// until end, if the agent outlives them, which only client-entrypoint promises.
func (s *syncer) leaveAgent(ctx context.Context, budget workload.StopBudget, end time.Time) error {
	limit := budget.HealthSync
	if s.token.login {
		limit = budget.Criticals
	}
	err := s.latchCritical(ctx, limit)
	stop := s.checks.readBackBeside(ctx)
	clientEnded := false
	if s.token.login && s.token.agentOwned() {
		s.await(ctx, end, tokenNeeded, func(t workload.Task) []workload.Container {
			if clientEnded = t.Ended(workload.ContainerConsulClient); clientEnded || !s.token.agentOwned() {
				return nil
			}
			users := t.Applications(s.options.Ignore)
			if s.options.Config.Gateway != nil {
				users = append(users, t.Proxies()...)
			}
			return users
		})
	}
	stop()
	s.token.logOutAll(ctx, clientEnded || !s.token.agentOwned())
	return err
}

// leaveServers ends a task without an agent. Its services stay in the servers'
// catalog until its proxy has stopped, or until end, unless it is a mesh gateway, which is
// deregistered before.
func (s *syncer) leaveServers(ctx context.Context, budget workload.StopBudget, end time.Time) error {
	err := s.latchCritical(ctx, budget.Criticals)
	stop := s.checks.readBackBeside(ctx)
	why := "they are deregistered after their last requests"
	if s.task.leavesEarly() {
		why = tokenNeeded
	}
	s.await(ctx, end, why, func(t workload.Task) []workload.Container {
		return append(t.Applications(s.options.Ignore), t.Proxies()...)
	})
	stop()
	if s.holding != nil {
		<-s.holding // it ended with TERM, and Deregister destroys its session
	}
	if s.task.known && (err != nil || !s.task.leavesEarly()) {
		const failure = "deregister services, which stay in Consul until the controller removes them"
		base := time.Second
		if err != nil { // the servers have failed until now: few attempts are left
			base = remaining(ctx)
		}
		remove := func(ctx context.Context) error {
			return s.deps.Registrar.Deregister(ctx, s.token.secret, s.task.workload)
		}
		err = errors.Join(err, s.deregister(ctx, failure, sparing(base, remaining(ctx), remove)))
	}
	s.token.logOutAll(ctx, false)
	return err
}

// latchCritical writes critical for every check, or deregisters a gateway that has none or
// leaves early, within limit.
func (s *syncer) latchCritical(ctx context.Context, limit time.Duration) error {
	if !s.task.checked() && s.options.Config.Gateway == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := s.token.readFile(workload.FileServiceToken)
	if errors.Is(err, errNoToken) && s.token.secret == "" && s.token.mayLogIn() {
		if err := s.token.logInSeparately(ctx, unknownTaskLimit, err); err != nil { // TERM came before the login
			return err
		}
	}
	if !s.token.reload() {
		// Nothing was registered, or nothing of us ever made it passing.
		s.task.log.Info("no service token, so no check is passing")
		return nil
	}
	if !s.task.known {
		if err := s.task.learn(ctx, unknownTaskLimit); err != nil {
			return fmt.Errorf("stopped before the task's services were known, which may still be passing: %w", err)
		}
	}
	err = s.leaveTraffic(ctx)
	switch {
	case errors.Is(err, errAgentGone):
		return s.deregisterGone(ctx)
	case consulutil.UnknownToken(err) && s.token.renewal != nil && !s.token.separate:
		if s.token.logInAtEnd(ctx) {
			return s.leaveTraffic(ctx)
		}
	}
	return err
}

// leaveTraffic makes the last write, and with an agent, or for a gateway, again a moment later
// if one may yet be applied that puts the task into traffic. Checks in the catalog are read
// back in the meantime before the task is deregistered.
func (s *syncer) leaveTraffic(ctx context.Context) error {
	write, success := s.checks.writeCritical, "left all checks critical"
	byChecks := s.task.checked() && !s.task.leavesEarly()
	if !byChecks { // a gateway
		write, success = s.deregisterGateway, "deregistered the gateway"
	}
	ambiguous := s.checks.readBacks.ambiguous() && !(byChecks && s.options.Config.Agentless())
	err := write(ctx)
	if ambiguous && !errors.Is(err, errAgentGone) && retry.Sleep(ctx, repeatDelay) == nil {
		err = write(ctx)
	}
	if err == nil {
		s.task.log.Info(success, logkey.Checks, len(s.task.workload.SyncChecks), logkey.ServiceID, s.task.workload.ID)
	}
	return err
}

// deregisterGone takes the services of an agent that is gone out of the servers' catalog. An
// agent that left has done so, one that died has not; and client-entrypoint leaves the
// services of one that ECS may restart, which ECS does not do once the task stops.
func (s *syncer) deregisterGone(ctx context.Context) error {
	const failure = "agent is gone, and its services may still be passing in Consul"
	if s.options.Config.ConsulHTTPAddr == "" {
		return errors.New(failure + ": consulHTTPAddr is not set, so the servers cannot be queried")
	}
	return s.deregister(ctx, failure, func(ctx context.Context) error {
		return s.deps.DeregisterAtServers(ctx, s.token.secret, s.task.workload)
	})
}

// deregister takes the services out of the servers' catalog. An error of it begins with
// failure.
func (s *syncer) deregister(ctx context.Context, failure string, remove func(context.Context) error) error {
	attempt := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return remove(ctx)
	}
	err := refusal(retry.Do(ctx, retry.Remote(), s.task.log, "deregister services", consulutil.Classify, attempt))
	if err != nil {
		return fmt.Errorf("%s: %w", failure, err)
	}
	s.task.log.Info("deregistered the services at the servers", logkey.ServiceID, s.task.workload.ID)
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

// tokenNeeded is why the service token stays until its users have stopped: Envoy receives
// changes upstream by it.
const tokenNeeded = "their last requests need the service token"

// await waits until the users have stopped, or until end.
func (s *syncer) await(ctx context.Context, end time.Time, why string, users func(workload.Task) []workload.Container) {
	limit := time.Until(end)
	if limit <= 0 || !s.token.reload() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := s.task.log.With(logkey.Reason, why)
	running, err := awsutil.AwaitStopped(ctx, log, s.task.fetch, awsutil.AwaitPause, users)
	if err != nil {
		s.task.log.Warn("cannot confirm that the applications have stopped, leaving the mesh anyway",
			logkey.Container, running, logkey.Elapsed, limit)
	}
}
