package broker

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// exchangeLimit bounds a redemption, whatever becomes of the caller's connection.
	exchangeLimit = 9 * time.Second
	// redemptionLimit is longer than a backend takes to make a token, also for a broker that
	// leads no longer.
	redemptionLimit = 20 * time.Second
	// revokeBase and revokeMax are the pauses between attempts to revoke a token for
	// revokeQuick; after that it is an alarm, and the pause is revokePause.
	revokeBase, revokeMax    = time.Second, 30 * time.Second
	revokeQuick, revokePause = time.Minute, time.Minute
	// revokeNowLimit bounds attempts to revoke a token at the end of a term.
	revokeNowLimit = 3 * time.Second
	// vouchLimit is how long ECS is asked again after a delivery; then the sweep asks.
	vouchLimit = 30 * time.Second
)

// errTermEnded is the answer to a request that another broker has to serve.
var errTermEnded error = later(http.StatusServiceUnavailable, "no_leader", busyPause, "this broker is no longer the leader: request a token again")

// redeem exchanges a handle for the token, once.
func (t *term) redeem(ctx context.Context, in receiver.UnwrapRequest, from caller) (receiver.Unwrapped, error) {
	if err := t.auditable(); err != nil {
		return receiver.Unwrapped{}, err
	}
	r, err := t.take(in, from)
	if err != nil {
		return receiver.Unwrapped{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeLimit)
	defer cancel()
	var token backend.Token
	done := make(chan struct{})
	// The end of a term waits for its jobs: a token that is being made is revoked then.
	if !t.run(func(context.Context) { defer close(done); token, err = t.exchange(ctx, r) }) {
		return receiver.Unwrapped{}, errTermEnded
	}
	<-done
	if err != nil {
		return receiver.Unwrapped{}, err
	}
	return receiver.Unwrapped{
		Secret: token.Secret, Accessor: token.Accessor, Backend: t.BackendName, Expires: token.Expires,
		Policies: token.Policies, Period: int(token.Period / time.Second),
	}, nil
}

// take finds the request of a handle and marks the handle as used.
func (t *term) take(in receiver.UnwrapRequest, from caller) (*request, error) {
	hash := in.Handle.SHA256()
	t.mu.Lock()
	r := t.requests[in.RequestID]
	if r == nil && t.AllowUnsealed {
		r = t.byHandle(hash)
	}
	if r == nil || subtle.ConstantTimeCompare(r.handle[:], hash[:]) != 1 {
		t.mu.Unlock()
		return nil, refuse(http.StatusNotFound, "unknown_handle", "the handle is unknown: request a token again")
	}
	elsewhere, twice, open := !from.from(r.subject.task.Address), r.taken, r.state.open()
	if !elsewhere && !twice && open {
		r.taken = true
	}
	t.mu.Unlock()
	switch {
	case elsewhere:
		t.on(r, misused, "the handle was presented from "+from.client.String())
		return nil, refuse(http.StatusUnauthorized, "address", "the handle does not come from the task's address")
	case twice:
		t.on(r, misused, "the handle was presented twice")
		return nil, refuse(http.StatusGone, receiver.HandleUsed, "the handle was used before")
	case !open:
		return nil, refuse(http.StatusGone, "expired", "the handle has expired")
	}
	return r, nil
}

// byHandle finds an unsealed request: the original form of the push has no request ID.
func (t *term) byHandle(hash [32]byte) *request {
	for _, r := range t.requests {
		if len(r.in.PublicKey) == 0 && r.handle == hash {
			return r
		}
	}
	return nil
}

// exchange makes the token. Before it, the record has the token's accessor, so that no
// crash leaves a token that a later broker does not know.
func (t *term) exchange(ctx context.Context, r *request) (backend.Token, error) {
	e := t.entry(r)
	if err := e.acquire(ctx); err != nil {
		return backend.Token{}, t.retryable(r, later(http.StatusServiceUnavailable, "busy", busyPause, "the task's record is busy"))
	}
	defer e.release()
	if err := t.prepare(ctx, e, r); err != nil {
		return backend.Token{}, t.retryable(r, err)
	}
	token, err := t.Backend.Redeem(ctx, r.grant)
	if err != nil && consulutil.Classify(err).Retryable() {
		return backend.Token{}, t.retryable(r, t.backendRefusal(r, "redeem the token", err))
	}
	if err != nil {
		t.on(r, faulted, err.Error())
		return backend.Token{}, t.backendRefusal(r, "redeem the token", err)
	}
	t.mu.Lock()
	r.accessor = token.Accessor
	t.mu.Unlock()
	err = t.write(ctx, e, func(rec *Record) {
		k := r.addTo(rec)
		k.Status, k.Accessor, k.SecretHash = TokenLive, token.Accessor, hashOf(token.Secret)
		k.Expires, k.Renewable = token.Expires, token.Period > 0
	})
	if t.ended() {
		err = cmp.Or(err, errTermEnded) // the next broker may not have read the record
	}
	if err == nil && t.on(r, redeemed, "") {
		return token, nil
	}
	gone := refuse(http.StatusGone, "ended", "the request has ended: request a token again")
	if err != nil && t.on(r, faulted, err.Error()) && !t.ended() { // a job revokes it
		return backend.Token{}, gone
	}
	// The request ended meanwhile, and perhaps the term: nothing else may revoke it. The
	// next leader must not take it for the token that the task has.
	_ = t.write(context.WithoutCancel(ctx), e, func(rec *Record) { rec.MarkRevoking(r.id) })
	if t.revokeNow(t.revocation(e, r.id, token.Accessor, gone.reason)) {
		_ = t.write(context.WithoutCancel(ctx), e, func(rec *Record) { rec.Remove(r.id) })
	} else {
		t.run(func(ctx context.Context) { t.revoke(ctx, e, r.id, token.Accessor, gone.reason) })
	}
	return backend.Token{}, gone
}

// lost are the live tokens that the task does not have when it redeems a handle: all, or
// for a rotation those after the one that it has shown. Those whose life is over are none.
func (r *request) lost(rec *Record, now time.Time) []IssuedToken {
	live := slices.DeleteFunc(slices.Clone(rec.Tokens), func(k IssuedToken) bool { return k.RequestID == r.id || k.Status != TokenLive })
	if r.bearer != "" {
		i := slices.IndexFunc(live, func(k IssuedToken) bool { return k.SecretHash == r.bearer })
		if i < 0 {
			return nil
		}
		live = live[i+1:]
	}
	return slices.DeleteFunc(live, func(k IssuedToken) bool { return k.Ended(now) })
}

// wasDelivered reports whether the task had a token, as far as is known. The caller holds mu.
func (t *term) wasDelivered(k IssuedToken) bool {
	r := t.requests[k.RequestID]
	return r == nil || r.proven
}

// prepare revokes the tokens that the task has lost, and records the one to come. One whose
// revocation the broker's privilege does not suffice for is revoked later. A rotation keeps
// the current token until the new one is confirmed.
func (t *term) prepare(ctx context.Context, e *entry, r *request) error {
	t.mu.Lock()
	lost := r.lost(&e.record, time.Now())
	if r.bearer == "" && slices.ContainsFunc(lost, t.wasDelivered) {
		e.regrants = append(e.regrants, time.Now())
	}
	t.mu.Unlock()
	var kept []string
	for _, k := range lost {
		err := t.Backend.Revoke(ctx, k.Accessor)
		switch {
		case err == nil:
		case consulutil.Classify(err).Retryable() && !errors.Is(err, backend.ErrPrivilege):
			return t.backendRefusal(r, "revoke the task's earlier token", err)
		default:
			kept = append(kept, k.RequestID)
		}
	}
	err := t.write(ctx, e, func(rec *Record) {
		for _, k := range lost {
			if slices.Contains(kept, k.RequestID) {
				rec.MarkRevoking(k.RequestID)
			} else {
				rec.Remove(k.RequestID)
			}
		}
		r.addTo(rec)
	})
	if err != nil {
		return later(http.StatusServiceUnavailable, "store", busyPause, "%v", err)
	}
	t.endAll(e, lost, "the task requested another token before it had this one")
	return nil
}

// retryable gives the handle back, so that it may be used again: as far as is known nothing
// was made. A lost answer to a login leaves a token that is not known.
func (t *term) retryable(r *request, err error) error {
	t.mu.Lock()
	r.taken = false
	t.mu.Unlock()
	return err
}

// awaitRedemption ends a request whose push was answered with 200 without redemption.
func (t *term) awaitRedemption(ctx context.Context, r *request) {
	if retry.Sleep(ctx, redeemLimit) == nil {
		t.on(r, unredeemed, "the push was answered with 200, and the handle was not redeemed")
	}
}

// vouch asks ECS again after a delivery: the address may be another task's by now.
func (t *term) vouch(ctx context.Context, r *request) {
	policy := retry.Policy{Base: time.Second, Max: 8 * time.Second, Limit: vouchLimit}
	// Without an answer the request stays accepted, and the sweep asks.
	_ = retry.Do(ctx, policy, t.Log, "describe the task again", retry.Always, func(ctx context.Context) error {
		return t.inspect(ctx, r)
	})
}

// inspect asks ECS once; an error means that it gave no answer.
func (t *term) inspect(ctx context.Context, r *request) error {
	task, err := t.lookups.task(ctx, r.cluster.ARN, r.in.TaskARN)
	if err != nil {
		return err
	}
	ip, err := t.Rules.check(r.cluster, r.in.TaskARN, task)
	notYet, _ := errors.AsType[*refusal](err)
	switch {
	case notYet != nil && notYet.after > 0:
		return err // an older state of a task that had its address before
	case err != nil:
		t.on(r, taskGone, err.Error())
	case ip != r.subject.task.Address:
		t.on(r, taskGone, "the task's address is "+ip.String()+" now")
	default:
		t.on(r, vouched, "")
	}
	return nil
}
