package healthsync

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// endMaintenance puts a gateway back into traffic that an earlier run of this
// container took out of it. It goes on until the agent has accepted that, also after a
// refusal: a new login may replace the token file. An agent that does not know the
// gateway has no maintenance of it either.
func (s *syncer) endMaintenance(ctx context.Context) {
	policy := retry.Policy{Base: retryPause, Max: retryPauseMax}
	classify := func(err error) retry.Class {
		class := s.Classify(err)
		if class == retry.Permanent {
			s.reloadToken()
			return retry.Retry
		}
		return class
	}
	// What is left are the end of ctx, and the gateway that the agent does not know.
	_ = retry.Do(ctx, policy, s.Log, "end maintenance of gateway", classify, func(ctx context.Context) error {
		err := s.setMaintenance(ctx, "")
		if err != nil && s.Classify(err) == retry.Retry && !refused(err) {
			s.unsettled[s.w.ID] = time.Now().Add(unsettledFor)
		}
		return err
	})
}

func (s *syncer) setMaintenance(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.Checks.SetMaintenance(ctx, s.token, s.w, reason)
}
