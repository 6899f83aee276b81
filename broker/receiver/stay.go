package receiver

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/awsutil/tmds"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// refreshLimit bounds one effort to replace a token; another follows.
	refreshLimit = time.Minute
	// maxPause bounds the pause between two efforts.
	maxPause = time.Minute
	// idle is how often a receiver that has nothing to do looks again.
	idle = time.Hour
)

// stay keeps the token valid until ctx ends. It returns an error only when the broker
// refuses a task that has no valid token.
func (r *receiver) stay(ctx context.Context) error {
	r.schedule()
	for {
		if retry.Sleep(ctx, time.Until(r.wake())) != nil || ctx.Err() != nil {
			r.leave(ctx)
			return nil
		}
		r.revokeRetired(ctx)
		if r.next.IsZero() || time.Now().Before(r.next) {
			continue
		}
		err := r.refresh(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			r.schedule()
		default:
			if permanent, ok := errors.AsType[*retry.PermanentError](err); ok && !r.held.valid(time.Now()) {
				return permanent
			}
			r.postpone(err)
		}
	}
}

// schedule sets the time of the next refresh: at 2/3 of the token's life, or up to a
// twentieth earlier, so that the tokens of a fleet are not replaced together.
func (r *receiver) schedule() {
	r.failures, r.next = 0, time.Time{}
	if life := r.held.life(); life > 0 {
		r.next = r.held.Obtained.Add(life*2/3 - rand.N(life/20+1))
	}
}

// postpone sets the time of the next attempt after a failure. Pauses are short against
// the rest of the token's life.
func (r *receiver) postpone(err error) {
	r.failures++
	policy := retry.Policy{Base: time.Second, Max: min(max(r.held.life()/20, time.Second), maxPause)}
	pause := policy.Pause(r.failures)
	r.next = time.Now().Add(pause)
	log := r.Log.Warn
	if !r.held.valid(time.Now()) {
		log = r.Log.Error
	}
	log("token not replaced, trying again", logkey.Accessor, r.held.Accessor, logkey.Expires, r.held.Expires,
		logkey.RetryIn, pause.Round(time.Millisecond), logkey.Error, err)
}

// wake is when there is something to do.
func (r *receiver) wake() time.Time {
	wake := time.Now().Add(idle)
	if !r.next.IsZero() && r.next.Before(wake) {
		wake = r.next
	}
	for _, t := range r.retired {
		if t.due.Before(wake) {
			wake = t.due
		}
	}
	return wake
}

// refresh renews the token, or obtains another one.
func (r *receiver) refresh(ctx context.Context) error {
	renew := r.Backends[r.held.Backend].Renew
	if r.held.Period == 0 || renew == nil || !r.held.valid(time.Now()) {
		return r.obtain(ctx, refreshLimit)
	}
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	life, err := renew(limited, r.held.secret)
	if err == nil {
		r.held.Obtained = time.Now()
		r.held.Expires = r.held.Obtained.Add(life)
		r.Log.Info("token renewed", logkey.Accessor, r.held.Accessor, logkey.Expires, r.held.Expires)
		if err := r.files.writeRecord(r.held); err != nil {
			r.Log.Warn("a restarted container will not know that the token was renewed", logkey.Error, err)
		}
		return nil
	}
	if !classify(err).Retryable() {
		r.Log.Error("the token cannot be renewed, requesting a new one", logkey.Accessor, r.held.Accessor, logkey.Error, err)
		r.held.Expires = time.Now()
		return r.obtain(ctx, refreshLimit)
	}
	return err
}

// leave keeps the token for the last requests of the applications, then removes and
// revokes it.
func (r *receiver) leave(ended context.Context) {
	start, budget := time.Now(), workload.NewStopBudget(r.StopTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, budget.ServiceLogout)
	defer stop()
	ignore := append(slices.Clone(r.Ignore), r.Metadata.Self())
	running, err := tmds.AwaitStopped(waiting, r.Log, r.Metadata.Task, tmds.AwaitPause, func(t workload.Task) []workload.Container {
		return t.Applications(ignore)
	})
	if err != nil {
		r.Log.Warn("applications are not known to have stopped, revoking the token all the same",
			logkey.Container, running, logkey.Elapsed, time.Since(start).Round(time.Millisecond))
	}
	// A later run of the container must not take over a token that is revoked.
	if err := r.files.remove(); err != nil {
		r.Log.Warn("token file not removed", logkey.Error, err)
	}
	for _, t := range r.retired {
		r.revoke(ctx, t.token)
	}
	if r.held.valid(time.Now()) {
		r.revoke(ctx, r.held)
	}
}
