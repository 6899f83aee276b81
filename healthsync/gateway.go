package healthsync

import (
	"context"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// leavesEarly reports whether the task is a gateway that is deregistered while it still has
// callers. Across the datacenters of a federation Consul gives the gateways on the way the
// health of the service behind them, so sidecar proxies send requests to all mesh gateways
// that are registered, healthy or not.
func (s *syncer) leavesEarly() bool {
	return s.Config.Gateway != nil && s.Config.Gateway.Kind == config.KindMeshGateway
}

// registerGateway puts a gateway back that an earlier run of this container deregistered
// at its agent. One that is registered is left alone: an agent that takes a registration again
// counts changes of its checks as sent which it has not sent. It continues until the agent has
// accepted that, also after a refusal: a new login may replace the token file.
func (s *syncer) registerGateway(ctx context.Context) {
	policy := retry.Policy{Base: retryPause, Max: retryPauseMax}
	classify := func(err error) retry.Class {
		class := consulutil.Classify(err)
		if class == retry.Permanent {
			s.reloadToken()
			return retry.NotYet
		}
		return class
	}
	// What is left is the end of ctx.
	_ = retry.Do(ctx, policy, s.Log, "register gateway", classify, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		_, err := s.Registrar.Proxy(ctx, s.token, s.w)
		if err == nil || consulutil.Classify(err) != retry.Gone {
			return err
		}
		err = s.Registrar.Register(ctx, s.token, s.w)
		if err != nil && consulutil.Classify(err) == retry.NotYet && !refused(err) && !consulutil.Unreachable(err) {
			s.readBacks.doubt = true
		}
		return err
	})
}

func (s *syncer) deregisterGateway(ctx context.Context) error {
	return s.lastWrite(ctx, "deregister gateway", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return s.Registrar.Deregister(ctx, s.token, s.w)
	})
}
