package broker

import (
	"context"
	"errors"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Elector picks the one of several brokers that leads, as consulutil.Lock does.
type Elector interface {
	Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error
}

// Run leads whenever the elector permits it, without one always, until the context ends
// or Consul refuses the token.
func (b *Broker) Run(ctx context.Context, elector Elector) error {
	lead := b.lead
	if elector != nil {
		lead = func(ctx context.Context) error { return b.contend(ctx, elector) }
	}
	policy := retry.Policy{Base: time.Second, Max: 10 * time.Second}
	for {
		err := retry.Do(ctx, policy, b.opt.Log, "leadership", consulutil.Classify, func(ctx context.Context) error {
			err := lead(ctx)
			lost, isLost := errors.AsType[*consulutil.LeadershipLostError](err)
			switch {
			case isLost:
				b.opt.Log.Warn("leadership lost", logkey.Error, lost.Err)
			case errors.Is(err, ErrStale):
				b.opt.Log.Warn("the records are read again", logkey.Error, err)
			default:
				return err
			}
			return nil // the next leadership may begin without back-off
		})
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (b *Broker) contend(ctx context.Context, elector Elector) error {
	defer b.leader.Store(nil)
	return elector.Lead(ctx, func(holder string) error {
		b.leader.Store(&holder)
		return nil
	}, b.lead)
}
