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
	"github.com/meshtask/consul-ecs/broker/grant"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// exchangeLimit bounds a redemption, whatever becomes of the caller's connection.
	exchangeLimit = 9 * time.Second
	// redemptionLimit is longer than a backend takes to make a token, also for a broker that
	// leads no longer.
	redemptionLimit = 20 * time.Second
	// revokeBase and revokeMax are the pauses between attempts to revoke a token.
	revokeBase, revokeMax = 500 * time.Millisecond, 30 * time.Second
	// revokeNowLimit bounds attempts to revoke a token at the end of a term.
	revokeNowLimit = 3 * time.Second
	// vouchLimit is how long ECS is asked again after a delivery; then the sweep asks.
	vouchLimit = 30 * time.Second
)

// errTermEnded is the answer to a request that another broker has to serve.
var errTermEnded error = later(http.StatusServiceUnavailable, "no_leader", busyPause, "this broker leads no longer: ask for a token again")

// redeem exchanges a handle for the token, once.
func (t *term) redeem(ctx context.Context, in grant.UnwrapRequest, from caller) (grant.Unwrapped, error) {
	r, err := t.take(in, from)
	if err != nil {
		return grant.Unwrapped{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeLimit)
	defer cancel()
	token, err := t.exchange(ctx, r)
	if err != nil {
		return grant.Unwrapped{}, err
	}
	return grant.Unwrapped{
		Secret: token.Secret, Accessor: token.Accessor, Backend: token.Backend, Expires: token.Expires,
		Policies: token.Policies, Period: int(token.Period / time.Second),
	}, nil
}

// take finds the request of a handle and marks the handle as used.
func (t *term) take(in grant.UnwrapRequest, from caller) (*request, error) {
	hash := in.Handle.SHA256()
	t.mu.Lock()
	r := t.requests[in.RequestID]
	if r == nil {
		r = t.byHandle(hash)
	}
	if r == nil || subtle.ConstantTimeCompare(r.handle[:], hash[:]) != 1 {
		t.mu.Unlock()
		return nil, refuse(http.StatusNotFound, "unknown_handle", "the handle is unknown: ask for a token again")
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
		return nil, refuse(http.StatusGone, "used", "the handle was used before")
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
	if err != nil && backend.Classify(err).Retryable() {
		return backend.Token{}, t.retryable(r, backendRefusal("redeem the token", err))
	}
	if err != nil {
		t.on(r, faulted, err.Error())
		return backend.Token{}, backendRefusal("redeem the token", err)
	}
	t.mu.Lock()
	r.accessor = token.Accessor
	t.mu.Unlock()
	err = t.write(ctx, e, func(rec *Record) {
		k := rec.find(r.id)
		if k == nil {
			rec.add(r, TokenLive)
			k = rec.find(r.id)
		}
		k.Status, k.Accessor, k.SecretHash = TokenLive, token.Accessor, hashOf(token.Secret)
		k.Expires, k.Renewable = token.Expires, token.Period > 0
	})
	select {
	case <-t.done:
		err = cmp.Or(err, errTermEnded) // the next broker may not have read the record
	default:
	}
	if err == nil && t.on(r, redeemed, "") {
		return token, nil
	}
	if err != nil {
		t.on(r, faulted, err.Error())
	}
	// The request ended meanwhile, and perhaps the term: nothing else may revoke it. The
	// next leader must not take it for the token that the task has.
	_ = t.write(context.WithoutCancel(ctx), e, func(rec *Record) { rec.revoking(r.id) })
	t.revokeNow(e, r.id, token.Accessor)
	return backend.Token{}, refuse(http.StatusGone, "ended", "the request has ended: ask for a token again")
}

// lost are the live tokens that the task does not have when it redeems a handle: all, or
// for a rotation those after the one that it has shown.
func (rec *Record) lost(r *request) []Token {
	live := slices.DeleteFunc(slices.Clone(rec.Tokens), func(k Token) bool { return k.RequestID == r.id || k.Status != TokenLive })
	if r.bearer == "" {
		return live
	}
	i := slices.IndexFunc(live, func(k Token) bool { return k.SecretHash == r.bearer })
	if i < 0 {
		return nil
	}
	return live[i+1:]
}

// wasDelivered reports whether the task had a token, as far as is known. The caller holds mu.
func (t *term) wasDelivered(k Token) bool {
	r := t.requests[k.RequestID]
	return r == nil || r.proven
}

// prepare revokes the tokens that the task has lost, and records the one to come. A
// rotation keeps the current token until the new one is confirmed.
func (t *term) prepare(ctx context.Context, e *entry, r *request) error {
	t.mu.Lock()
	lost := e.record.lost(r)
	if r.bearer == "" && slices.ContainsFunc(lost, t.wasDelivered) {
		e.regrants = append(e.regrants, time.Now())
	}
	t.mu.Unlock()
	for _, k := range lost {
		if err := t.Backend.Revoke(ctx, k.Accessor); err != nil {
			if backend.Classify(err).Retryable() {
				return backendRefusal("revoke the task's earlier token", err)
			}
			t.unrevoked(e, k.RequestID, k.Accessor, err)
		}
		t.end(k.RequestID, "the task asked for another token without having this one")
	}
	err := t.write(ctx, e, func(rec *Record) {
		rec.Tokens = slices.DeleteFunc(rec.Tokens, func(k Token) bool {
			return slices.ContainsFunc(lost, func(l Token) bool { return l.RequestID == k.RequestID })
		})
		rec.add(r, TokenPending)
	})
	if err != nil {
		return later(http.StatusServiceUnavailable, "store", busyPause, "%v", err)
	}
	return nil
}

// tokenOf finds a token of any task by its secret, also one that is replaced or being revoked.
func (t *term) tokenOf(bearer secret.Value) (*entry, Token, bool) {
	hash := hashOf(bearer)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.tasks {
		if i := slices.IndexFunc(e.record.Tokens, func(k Token) bool { return k.SecretHash == hash }); i >= 0 {
			return e, e.record.Tokens[i], true
		}
	}
	return nil, Token{}, false
}

// adopt gives a backend that revokes a token with its secret only the secret of one that
// an earlier broker has made.
func (t *term) adopt(k Token, held secret.Value) {
	if a, ok := t.Backend.(backend.Adopter); ok {
		a.Adopt(backend.Token{Secret: held, Accessor: k.Accessor, Expires: k.Expires})
	}
}

// end ends the request of a token that is no longer the task's, and revokes the token. It
// returns false if the request is not known any more.
func (t *term) end(requestID, reason string) bool {
	r := t.request(requestID)
	return r != nil && t.on(r, replaced, reason)
}

// retryable gives the handle back: nothing was made, so that it may be used again.
func (t *term) retryable(r *request, err error) error {
	t.mu.Lock()
	r.taken = false
	t.mu.Unlock()
	return err
}

// backendRefusal is the answer to a failure of the backend.
func backendRefusal(what string, err error) error {
	switch {
	case errors.Is(err, backend.ErrPolicy):
		return refuse(http.StatusUnprocessableEntity, "policies", "%s: %v", what, err)
	case errors.Is(err, backend.ErrExpired), errors.Is(err, backend.ErrUsed):
		return refuse(http.StatusGone, "expired", "%s: %v", what, err)
	case !backend.Classify(err).Retryable() && !errors.Is(err, backend.ErrPrivilege):
		return refuse(http.StatusUnprocessableEntity, "backend", "%s: %v", what, err)
	}
	return later(http.StatusServiceUnavailable, "backend", busyPause, "%s: %v", what, err)
}

// revoke revokes the token of a request, as long as it takes, and forgets it. The audit log
// has the reason in the line of the request's transition, or here for one of an earlier term.
func (t *term) revoke(ctx context.Context, e *entry, requestID, accessor, reason string) {
	err := t.save(ctx, e, func(rec *Record) { rec.revoking(requestID) })
	if err != nil && ctx.Err() == nil {
		t.Log.Warn("a revocation was not recorded", logkey.Accessor, accessor, logkey.Error, err)
	}
	known := t.recorded(e, requestID)
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: MaxTTL}
	err = retry.Do(ctx, policy, t.Log, "revoke a token", backend.Classify, func(ctx context.Context) error {
		if err := e.acquire(ctx); err != nil {
			return err
		}
		defer e.release()
		t.mu.Lock()
		k := e.record.find(requestID)
		if k != nil {
			accessor = k.Accessor // of the token, if it was redeemed meanwhile
		}
		t.mu.Unlock()
		if known && k == nil {
			return nil // another job has revoked it
		}
		if err := t.Backend.Revoke(ctx, accessor); err != nil {
			return err
		}
		if err := t.write(ctx, e, func(rec *Record) { rec.remove(requestID) }); err != nil {
			return err
		}
		if t.request(requestID) == nil {
			t.audit.write(line{
				Time: time.Now(), Request: requestID, Task: e.record.TaskARN, Accessor: accessor, Backend: t.Backend.Name(),
				Decision: string(Revoked), Reason: reason,
			})
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() == nil:
		t.unrevoked(e, requestID, accessor, err)
	case err != nil && !t.recorded(e, requestID): // then the next broker does not know it
		t.revokeNow(e, requestID, accessor)
	}
}

func (t *term) recorded(e *entry, requestID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.record.find(requestID) != nil
}

// revokeNow revokes the token of a request within a few seconds, when no job may do it.
func (t *term) revokeNow(e *entry, requestID, accessor string) {
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: revokeNowLimit}
	err := retry.Do(context.Background(), policy, t.Log, "revoke a token", backend.Classify, func(ctx context.Context) error {
		return t.Backend.Revoke(ctx, accessor)
	})
	if err != nil {
		t.unrevoked(e, requestID, accessor, err)
	}
}

// unrevoked reports a token that stays until its TTL ends.
func (t *term) unrevoked(e *entry, requestID, accessor string, err error) {
	t.Metrics.revokeFailures.Add(1)
	t.audit.write(line{
		Time: time.Now(), Request: requestID, Task: e.record.TaskARN, Accessor: accessor, Backend: t.Backend.Name(),
		Decision: "not_revoked", Reason: err.Error(), Alarm: true,
	})
	t.Log.Error("a token cannot be revoked: it ends with its TTL", logkey.Accessor, accessor, logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
}

// replace revokes the task's tokens before a confirmed one, after the overlap.
func (t *term) replace(ctx context.Context, e *entry, confirmed string) {
	var earlier []Token
	err := t.save(ctx, e, func(rec *Record) { earlier = rec.replace(confirmed) })
	if err != nil && ctx.Err() == nil {
		t.Log.Warn("a rotation was not recorded", logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
	}
	t.revokeReplaced(ctx, e, earlier)
}

// newerToken and returnedToken are reasons of revocations.
const newerToken, returnedToken = "the task has a newer token", "its holder gave it back"

func (t *term) revokeReplaced(ctx context.Context, e *entry, tokens []Token) {
	if len(tokens) == 0 || retry.Sleep(ctx, Overlap) != nil {
		return
	}
	for _, k := range tokens {
		if !t.end(k.RequestID, newerToken) {
			t.run(func(ctx context.Context) { t.revoke(ctx, e, k.RequestID, k.Accessor, newerToken) })
		}
	}
}

// awaitRedemption ends a request whose push was answered with 200 without redemption.
func (t *term) awaitRedemption(ctx context.Context, r *request) {
	limit := time.NewTimer(redeemLimit)
	defer limit.Stop()
	select {
	case <-r.given:
	case <-r.over:
	case <-ctx.Done():
	case <-limit.C:
		t.on(r, unredeemed, "the push was answered with 200, and the handle was not redeemed")
	}
}

// vouch asks ECS again after a delivery: the address may be another task's by now.
func (t *term) vouch(ctx context.Context, r *request) {
	policy := retry.Policy{Base: time.Second, Max: 8 * time.Second, Limit: vouchLimit}
	// Without an answer the request stays accepted, and the sweep asks.
	_ = retry.Do(ctx, policy, t.Log, "ask ECS again", func(error) retry.Class { return retry.Retry }, func(ctx context.Context) error {
		return t.inspect(ctx, r)
	})
}

// inspect asks ECS once; an error means that it did not say.
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
