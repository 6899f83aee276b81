package healthsync

import (
	"context"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// registerGateway puts a gateway back that an earlier run of this container deregistered
// at its agent. One that is registered is left alone: an agent that takes a registration again
// counts changes of its checks as sent which it has not sent. It continues until the agent has
// accepted that, also after a refusal: a new login may replace the token file.
func (s *syncer) registerGateway(ctx context.Context) {
	policy := retry.Policy{Base: retryPause, Max: retryPauseMax}
	classify := func(err error) retry.Class {
		class := consulutil.Classify(err)
		if class == retry.Permanent {
			s.token.reload()
			return retry.NotYet
		}
		return class
	}
	// What is left is the end of ctx.
	_ = retry.Do(ctx, policy, s.task.log, "register gateway", classify, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		_, err := s.deps.Registrar.Proxy(ctx, s.token.secret, s.task.workload)
		if err == nil || consulutil.Classify(err) != retry.Gone {
			return err
		}
		err = s.deps.Registrar.Register(ctx, s.token.secret, s.task.workload)
		if err != nil && consulutil.Classify(err) == retry.NotYet && !refused(err) && !consulutil.Unreachable(err) {
			s.checks.readBacks.unanswered = true
		}
		return err
	})
}

func (s *syncer) deregisterGateway(ctx context.Context) error {
	return s.checks.lastWrite(ctx, "deregister gateway", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return s.deps.Registrar.Deregister(ctx, s.token.secret, s.task.workload)
	})
}
