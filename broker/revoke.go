package broker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// postRevoke revokes the bearer for its holder, who may not be able to do that. Without
// success within receiver.RevocationLimit the attempts go on after the answer.
func (t *term) postRevoke(r *http.Request, from caller) (result, error) {
	bearer, err := bearerOf(r)
	if err != nil {
		return result{}, err
	}
	e, k, found := t.tokenOf(bearer)
	switch {
	case !found:
		return result{}, refuse(http.StatusUnauthorized, receiver.UnknownToken, "the bearer is not a live token of this broker")
	case from.known() && from.client.String() != k.Address:
		if t.due("elsewhere " + k.RequestID) {
			t.Metrics.alarms.Add(1)
			t.audit.write(line{
				Request: k.RequestID, Task: e.record.TaskARN, Peer: from.peer.String(), Accessor: k.Accessor,
				Decision: "revocation_refused", Reason: "the token was presented from " + from.client.String(), Alarm: true,
			})
		}
		return result{}, refuse(http.StatusUnauthorized, "address", "the request does not come from the task's address")
	}
	t.adopt(k, bearer)
	if given := t.request(k.RequestID); given != nil {
		t.on(given, returned, returnedToken)
	}
	done := make(chan error, 1)
	if !t.run(func(ctx context.Context) { done <- t.revoke(ctx, e, k.RequestID, k.Accessor, returnedToken) }) {
		return result{}, errTermEnded
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiver.RevocationLimit)
	defer cancel()
	select {
	case err = <-done:
	case <-ctx.Done():
	}
	if permanent, ok := errors.AsType[*retry.PermanentError](err); ok {
		return result{}, refuse(http.StatusUnprocessableEntity, receiver.BackendFailed, "the token cannot be revoked, and %s: %v", k.End(), permanent)
	}
	if t.recorded(e, k.RequestID) {
		return result{}, later(http.StatusServiceUnavailable, "not_revoked", busyPause, "the token is not revoked yet: retry later")
	}
	return result{status: http.StatusOK, body: map[string]bool{"revoked": true}}, nil
}

// tokenOf finds a token of any task by its secret, also one that is replaced or being revoked.
func (t *term) tokenOf(bearer secret.Value) (*entry, IssuedToken, bool) {
	hash := hashOf(bearer)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.holders[hash]
	if e == nil {
		return nil, IssuedToken{}, false
	}
	i := slices.IndexFunc(e.record.Tokens, func(k IssuedToken) bool { return k.SecretHash == hash })
	return e, e.record.Tokens[i], true
}

// adopt gives a backend that revokes a token with its secret only the secret of one that
// an earlier broker has made.
func (t *term) adopt(k IssuedToken, held secret.Value) {
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

// revoke revokes the token of a request, as long as it takes, and forgets it. While another
// job does that, it tries for as long as a holder waits who gives the token back.
// A *retry.PermanentError means that the backend refuses to.
func (t *term) revoke(ctx context.Context, e *entry, requestID, accessor, reason string) error {
	t.mu.Lock()
	another := t.revoking[requestID]
	t.revoking[requestID] = true
	t.mu.Unlock()
	if another {
		ctx, cancel := context.WithTimeout(ctx, receiver.RevocationLimit)
		defer cancel()
		return t.tryRevoke(ctx, e, requestID, accessor, reason)
	}
	err := t.tryRevoke(ctx, e, requestID, accessor, reason)
	t.mu.Lock()
	delete(t.revoking, requestID)
	t.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil:
		t.unrevoked(e, requestID, accessor, err)
	case err != nil && !t.recorded(e, requestID): // then the next broker does not know it
		t.revokeNow(e, requestID, accessor)
	}
	return err
}

// tryRevoke revokes a token until ctx ends. The audit log has the reason in the line of the
// request's transition, or here for one of an earlier term.
func (t *term) tryRevoke(ctx context.Context, e *entry, requestID, accessor, reason string) error {
	err := t.save(ctx, e, func(rec *Record) { rec.MarkRevoking(requestID) })
	if err != nil && ctx.Err() == nil {
		t.Log.Warn("a revocation was not recorded", logkey.Accessor, accessor, logkey.Error, err)
	}
	known := t.recorded(e, requestID)
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: MaxTTL}
	return retry.Do(ctx, policy, t.Log, "revoke a token", consulutil.Classify, func(ctx context.Context) error {
		if err := e.acquire(ctx); err != nil {
			return err
		}
		defer e.release()
		t.mu.Lock()
		k := e.record.Find(requestID)
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
		if err := t.write(ctx, e, func(rec *Record) { rec.Remove(requestID) }); err != nil {
			return consulutil.WithClass(err, retry.NotYet) // the token is revoked: not an alarm
		}
		if t.request(requestID) == nil {
			t.audit.write(line{
				Request: requestID, Task: e.record.TaskARN, Accessor: accessor, Decision: string(Revoked), Reason: reason,
			})
		}
		return nil
	})
}

func (t *term) recorded(e *entry, requestID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.record.Find(requestID) != nil
}

// revokeNow revokes the token of a request within a few seconds, when no job may do it, and
// reports whether it has.
func (t *term) revokeNow(e *entry, requestID, accessor string) bool {
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: revokeNowLimit}
	err := retry.Do(context.Background(), policy, t.Log, "revoke a token", consulutil.Classify, func(ctx context.Context) error {
		return t.Backend.Revoke(ctx, accessor)
	})
	if err != nil {
		t.unrevoked(e, requestID, accessor, err)
	}
	return err == nil
}

// unrevoked reports a token that cannot be revoked, once in alarmPause.
func (t *term) unrevoked(e *entry, requestID, accessor string, err error) {
	t.mu.Lock()
	ended, message := false, "a token cannot be revoked"
	if k := e.record.Find(requestID); k != nil {
		ended, message = k.Ended(time.Now()), message+", and "+k.End()
	}
	t.mu.Unlock()
	if ended || !t.due("revoke "+requestID) {
		return
	}
	t.Metrics.revokeFailures.Add(1)
	t.audit.write(line{
		Request: requestID, Task: e.record.TaskARN, Accessor: accessor, Decision: "not_revoked", Reason: err.Error(), Alarm: true,
	})
	t.Log.Error(message, logkey.Accessor, accessor, logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
}

// replace revokes the task's tokens before a confirmed one, after the overlap.
func (t *term) replace(ctx context.Context, e *entry, confirmed string) {
	var earlier []IssuedToken
	err := t.save(ctx, e, func(rec *Record) { earlier = rec.MarkReplaced(confirmed) })
	if err != nil && ctx.Err() == nil {
		t.Log.Warn("a rotation was not recorded", logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
	}
	t.revokeReplaced(ctx, e, earlier)
}

// newerToken and returnedToken are reasons of revocations.
const newerToken, returnedToken = "the task has a newer token", "revoked by its holder"

func (t *term) revokeReplaced(ctx context.Context, e *entry, tokens []IssuedToken) {
	if len(tokens) == 0 || retry.Sleep(ctx, overlap) != nil {
		return
	}
	for _, k := range tokens {
		if !t.end(k.RequestID, newerToken) {
			t.run(func(ctx context.Context) { t.revoke(ctx, e, k.RequestID, k.Accessor, newerToken) })
		}
	}
}
