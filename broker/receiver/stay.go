package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
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
	// lookPause is how often a receiver looks whether its token still exists, and
	// againPause when it looks again after the answer that it does not.
	lookPause, againPause = time.Minute, 5 * time.Second
)

// stay keeps the token valid until ctx ends. It returns an error only when the broker
// refuses a task that has no valid token.
func (r *receiver) stay(ctx context.Context) error {
	r.schedule()
	if p := r.held.Previous; p != nil && len(r.retired) == 0 && time.Now().Before(p.Expires) {
		// An earlier run has replaced a token and was killed before it has revoked that. With
		// the next rotation the broker knows which token the task has, and ends the others.
		r.next = time.Now()
	}
	for {
		if retry.Sleep(ctx, time.Until(r.wake())) != nil || ctx.Err() != nil {
			r.leave(ctx)
			return nil
		}
		r.revokeRetired(ctx)
		r.look(ctx)
		if r.next.IsZero() || time.Now().Before(r.next) {
			continue
		}
		err := r.refresh(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			r.schedule()
		default:
			permanent, ok := errors.AsType[*retry.PermanentError](err)
			// Not final: an operator can renew the broker's certificate.
			_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
			if ok && !certificate && !r.held.valid(time.Now()) {
				return permanent
			}
			r.postpone(err)
		}
	}
}

// schedule sets the time of the next refresh: at 2/3 of the token's life, or up to a
// twentieth earlier, so that the tokens of a fleet are not replaced together.
func (r *receiver) schedule() {
	r.failing, r.next = time.Time{}, time.Time{}
	r.looked, r.missing = time.Now(), 0
	if life := r.held.life(); life > 0 {
		r.next = r.held.Obtained.Add(life*2/3 - rand.N(life/20+1))
	}
}

// postpone sets the time of the next attempt after a failure. Pauses are short against
// the rest of the token's life.
func (r *receiver) postpone(err error) {
	if r.failing.IsZero() {
		r.failing = time.Now()
	}
	policy := retry.Policy{Base: time.Second, Max: min(max(r.held.life()/20, time.Second), maxPause)}
	pause := policy.Pause(time.Since(r.failing))
	r.next = time.Now().Add(pause)
	log := r.deps.Log.Warn
	if !r.held.valid(time.Now()) {
		log = r.deps.Log.Error
	}
	log("token not replaced, trying again", logkey.Accessor, r.held.Accessor, logkey.Expires, r.held.end(),
		logkey.RetryIn, pause.Round(time.Millisecond), logkey.Error, err)
}

// wake returns when there is something to do.
func (r *receiver) wake() time.Time {
	all := []time.Time{time.Now().Add(idle), r.next, r.nextLook()}
	for _, t := range r.retired {
		all = append(all, t.due)
	}
	all = slices.DeleteFunc(all, time.Time.IsZero)
	return slices.MinFunc(all, time.Time.Compare)
}

// nextLook returns when to look whether the token still exists; zero for never.
func (r *receiver) nextLook() time.Time {
	switch {
	case r.deps.Actions[r.held.Backend].Alive == nil || !r.held.valid(time.Now()):
		return time.Time{}
	case r.missing > 0:
		return r.looked.Add(againPause)
	}
	return r.looked.Add(lookPause)
}

// look notices a token that another process has revoked, such as the broker: its
// replacement is due at once. No answer changes nothing, and one is not believed alone.
func (r *receiver) look(ctx context.Context) {
	if due := r.nextLook(); due.IsZero() || time.Now().Before(due) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	alive, err := r.deps.Actions[r.held.Backend].Alive(limited, r.held.secret)
	r.looked = time.Now()
	switch {
	case err != nil:
		r.deps.Log.Debug("token not looked up", logkey.Accessor, r.held.Accessor, logkey.Error, err)
		return
	case alive:
		r.missing = 0
		return
	}
	if r.missing++; r.missing > 1 {
		r.deps.Log.Error("the token was revoked by another process, requesting a new one", logkey.Accessor,
			r.held.Accessor)
		r.held.Expires, r.next = r.looked, r.looked
	}
}

// refresh renews the token, or obtains another one.
func (r *receiver) refresh(ctx context.Context) error {
	renew := r.deps.Actions[r.held.Backend].Renew
	if r.held.Period == 0 || renew == nil || !r.held.valid(time.Now()) {
		return r.obtain(ctx, refreshLimit)
	}
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	life, err := renew(limited, r.held.secret)
	if err == nil {
		r.held.Obtained = time.Now()
		r.held.Expires = r.held.Obtained.Add(life)
		r.deps.Log.Info("token renewed", logkey.Accessor, r.held.Accessor, logkey.Expires, r.held.end())
		r.recordHeld()
		return nil
	}
	if !consulutil.Classify(err).Retryable() {
		r.deps.Log.Error("the token cannot be renewed, requesting a new one", logkey.Accessor, r.held.Accessor,
			logkey.Error, err)
		r.held.Expires = time.Now()
		return r.obtain(ctx, refreshLimit)
	}
	return err
}

// leave keeps the token for the last requests of the applications, then removes and
// revokes it.
func (r *receiver) leave(ended context.Context) {
	start, budget := time.Now(), workload.NewStopBudget(r.opt.StopTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), budget.HealthSync)
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, budget.ServiceLogout)
	defer stop()
	ignore := append(slices.Clone(r.opt.Ignore), r.deps.Self())
	running, err := r.deps.AwaitStopped(waiting, func(t workload.Task) []workload.Container {
		return t.Applications(ignore)
	})
	if err != nil {
		r.deps.Log.Warn("cannot confirm that the applications have stopped, revoking the token anyway",
			logkey.Container, running, logkey.Elapsed, time.Since(start).Round(time.Millisecond))
	}
	// A later run of the container must not take over a token that is revoked.
	if err := r.files.remove(); err != nil {
		r.deps.Log.Warn("token file not removed", logkey.Error, err)
	}
	for _, t := range r.retired {
		r.revoke(ctx, t.token)
	}
	if r.held.valid(time.Now()) {
		r.revoke(ctx, r.held)
	}
}
