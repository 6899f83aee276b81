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
	// revokeNowLimit bounds attempts to revoke a token at the end of a leadership.
	revokeNowLimit = 3 * time.Second
	// recheckLimit is how long ECS is asked again after a delivery; then the sweep asks.
	recheckLimit = 30 * time.Second
)

// errNotLeader is the answer to a request that another broker has to serve.
var errNotLeader error = later(http.StatusServiceUnavailable, "no_leader", busyPause,
	"this broker is no longer the leader: request a token again")

// redeemer exchanges handles for tokens.
type redeemer struct{ lead *leadership }

// redeem exchanges a handle for the token, once.
func (d redeemer) redeem(ctx context.Context, in receiver.UnwrapRequest, from caller) (receiver.Unwrapped, error) {
	if err := d.lead.broker.auditable(); err != nil {
		return receiver.Unwrapped{}, err
	}
	r, err := d.claim(in, from)
	if err != nil {
		return receiver.Unwrapped{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeLimit)
	defer cancel()
	var token backend.Token
	done := make(chan struct{})
	// The end of a leadership waits for its jobs: a token that is being made is revoked then.
	if !d.lead.jobs.start(func(context.Context) { defer close(done); token, err = d.exchange(ctx, r) }) {
		return receiver.Unwrapped{}, errNotLeader
	}
	<-done
	if err != nil {
		return receiver.Unwrapped{}, err
	}
	return receiver.Unwrapped{
		Secret: token.Secret, Accessor: token.Accessor, Backend: d.lead.opt.BackendName, Expires: token.Expires,
		Policies: token.Policies, Period: int(token.Period / time.Second),
	}, nil
}

// claim finds the request of a handle and marks the handle as used.
func (d redeemer) claim(in receiver.UnwrapRequest, from caller) (*request, error) {
	hash := in.Handle.SHA256()
	d.lead.table.mu.Lock()
	r := d.lead.table.requests[in.RequestID]
	if r == nil && d.lead.opt.AllowUnsealed {
		r = d.lead.table.byHandle(hash)
	}
	if r == nil || subtle.ConstantTimeCompare(r.handle[:], hash[:]) != 1 {
		d.lead.table.mu.Unlock()
		return nil, refuse(http.StatusNotFound, "unknown_handle", "the handle is unknown: request a token again")
	}
	elsewhere, twice, open := !from.from(r.subject.task.Address), r.claimed, r.state.open()
	if !elsewhere && !twice && open {
		r.claimed = true
	}
	d.lead.table.mu.Unlock()
	switch {
	case elsewhere:
		d.lead.on(r, misused, "the handle was presented from "+from.client.String())
		return nil, refuse(http.StatusUnauthorized, "address", "the handle does not come from the task's address")
	case twice:
		d.lead.on(r, misused, "the handle was presented twice")
		return nil, refuse(http.StatusGone, receiver.HandleUsed, "the handle was used before")
	case !open:
		return nil, refuse(http.StatusGone, "expired", "the handle has expired")
	}
	return r, nil
}

// exchange makes the token. Before it, the record has the token's accessor, so that no
// crash leaves a token that a later broker does not know.
func (d redeemer) exchange(ctx context.Context, r *request) (backend.Token, error) {
	e := d.lead.table.entry(r)
	if err := e.acquire(ctx); err != nil {
		return backend.Token{}, d.release(r, later(http.StatusServiceUnavailable, "busy", busyPause,
			"the task's record is busy"))
	}
	defer e.release()
	if err := d.prepare(ctx, e, r); err != nil {
		return backend.Token{}, d.release(r, err)
	}
	token, err := d.lead.opt.Backend.Redeem(ctx, r.grant)
	if err != nil && consulutil.Classify(err).Retryable() {
		return backend.Token{}, d.release(r, d.lead.backendRefusal(r, "redeem the token", err))
	}
	if err != nil {
		d.lead.on(r, faulted, err.Error())
		return backend.Token{}, d.lead.backendRefusal(r, "redeem the token", err)
	}
	d.lead.table.mu.Lock()
	r.accessor = token.Accessor
	d.lead.table.mu.Unlock()
	err = d.lead.records.write(ctx, e, func(rec *Record) {
		k := r.addTo(rec)
		k.Status, k.Accessor, k.SecretHash = TokenLive, token.Accessor, hashOf(token.Secret)
		k.Expires, k.Renewable = token.Expires, token.Period > 0
	})
	if d.lead.jobs.ended() {
		err = cmp.Or(err, errNotLeader) // the next broker may not have read the record
	}
	if err == nil && d.lead.on(r, redeemed, "") {
		return token, nil
	}
	gone := refuse(http.StatusGone, "ended", "the request has ended: request a token again")
	if err != nil && d.lead.on(r, faulted, err.Error()) && !d.lead.jobs.ended() { // a job revokes it
		return backend.Token{}, gone
	}
	// The request ended meanwhile, and perhaps the leadership: nothing else may revoke it. The
	// next leader must not take it for the token that the task has.
	_ = d.lead.records.write(context.WithoutCancel(ctx), e, func(rec *Record) { rec.MarkRevoking(r.id) })
	revocation := revocation{entry: e, requestID: r.id, accessor: token.Accessor, reason: gone.reason}
	if d.lead.revoker.revokeNow(&revocation) {
		_ = d.lead.records.write(context.WithoutCancel(ctx), e, func(rec *Record) { rec.Remove(r.id) })
	} else {
		d.lead.revoker.start(revocation)
	}
	return backend.Token{}, gone
}

// undelivered returns the live tokens that the task does not have when it redeems a handle: all, or
// for a rotation those after the one that it has shown. Those whose life is over are none.
func (r *request) undelivered(rec *Record, now time.Time) []IssuedToken {
	live := slices.DeleteFunc(slices.Clone(rec.Tokens), func(k IssuedToken) bool {
		return k.RequestID == r.id || k.Status != TokenLive
	})
	if r.bearer != "" {
		i := slices.IndexFunc(live, func(k IssuedToken) bool { return k.SecretHash == r.bearer })
		if i < 0 {
			return nil
		}
		live = live[i+1:]
	}
	return slices.DeleteFunc(live, func(k IssuedToken) bool { return k.Ended(now) })
}

// prepare revokes the tokens that the task has lost, and records the one to come. One whose
// revocation the broker's privilege does not suffice for is revoked later. A rotation keeps
// the current token until the new one is confirmed.
func (d redeemer) prepare(ctx context.Context, e *entry, r *request) error {
	d.lead.table.mu.Lock()
	undelivered := r.undelivered(&e.record, time.Now())
	if r.bearer == "" && slices.ContainsFunc(undelivered, d.lead.table.wasDelivered) {
		e.regrants = append(e.regrants, time.Now())
	}
	d.lead.table.mu.Unlock()
	var retained []string
	for _, k := range undelivered {
		err := d.lead.opt.Backend.Revoke(ctx, k.Accessor)
		switch {
		case err == nil:
		case consulutil.Classify(err).Retryable() && !errors.Is(err, backend.ErrPrivilege):
			return d.lead.backendRefusal(r, "revoke the task's earlier token", err)
		default:
			retained = append(retained, k.RequestID)
		}
	}
	err := d.lead.records.write(ctx, e, func(rec *Record) {
		for _, k := range undelivered {
			if slices.Contains(retained, k.RequestID) {
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
	d.lead.endAll(e, undelivered, "the task requested another token before it had this one")
	return nil
}

// release gives the handle back, so that it may be used again: as far as is known nothing
// was made. A lost answer to a login leaves a token that is not known.
func (d redeemer) release(r *request, err error) error {
	d.lead.table.mu.Lock()
	r.claimed = false
	d.lead.table.mu.Unlock()
	return err
}

// awaitRedemption ends a request whose push was answered with 200 without redemption.
func (l *leadership) awaitRedemption(ctx context.Context, r *request) {
	if retry.Sleep(ctx, redeemLimit) == nil {
		l.on(r, unredeemed, "the push was answered with 200, and the handle was not redeemed")
	}
}

// recheckTask asks ECS again after a delivery: the address may be another task's by now.
func (l *leadership) recheckTask(ctx context.Context, r *request) {
	policy := retry.Policy{Base: time.Second, Max: 8 * time.Second, Limit: recheckLimit}
	// Without an answer the request stays accepted, and the sweep asks.
	_ = retry.Do(ctx, policy, l.opt.Log, "describe the task again", retry.Always, func(ctx context.Context) error {
		return l.recheckOnce(ctx, r)
	})
}

// recheckOnce asks ECS once; an error means that it gave no answer.
func (l *leadership) recheckOnce(ctx context.Context, r *request) error {
	task, err := l.lookups.task(ctx, r.cluster.ARN, r.in.TaskARN)
	if err != nil {
		return err
	}
	ip, err := l.opt.Rules.check(r.cluster, r.in.TaskARN, task)
	notYet, _ := errors.AsType[*refusal](err)
	switch {
	case notYet != nil && notYet.after > 0:
		return err // an older state of a task that had its address before
	case err != nil:
		l.on(r, taskGone, err.Error())
	case ip != r.subject.task.Address:
		l.on(r, taskGone, "the task's address is "+ip.String()+" now")
	default:
		l.on(r, taskConfirmed, "")
	}
	return nil
}
