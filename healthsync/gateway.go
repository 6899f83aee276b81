package healthsync

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// endMaintenance puts a gateway back into traffic that an earlier run of this
// container took out of it. It goes on until the agent has accepted that; an agent
// that does not know the gateway has no maintenance of it either.
func (s *syncer) endMaintenance(ctx context.Context) {
	policy := retry.LocalAgent()
	policy.Limit = 0
	err := retry.Do(ctx, policy, s.Log, "end maintenance of gateway", s.Classify, func(ctx context.Context) error {
		err := s.setMaintenance(ctx, "")
		if err != nil && s.Classify(err) == retry.Retry && !refused(err) {
			s.unsettled[s.w.ID] = time.Now().Add(unsettledFor)
		}
		return err
	})
	if err != nil && ctx.Err() == nil && s.Classify(refusal(err)) != retry.Gone {
		s.Log.Error("gateway may still be in maintenance", logkey.ServiceID, s.w.ID, logkey.Error, err)
	}
}

func (s *syncer) setMaintenance(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.Checks.SetMaintenance(ctx, s.token, s.w, reason)
}
