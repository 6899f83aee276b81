package broker

import (
	"context"
	"errors"
	"fmt"
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
	job := func(ctx context.Context) {
		limited, cancel := context.WithTimeout(ctx, receiver.RevocationLimit)
		err := t.revokeWithin(limited, t.revocation(e, k.RequestID, k.Accessor, returnedToken))
		cancel()
		if done <- err; err != nil {
			t.revoke(ctx, e, k.RequestID, k.Accessor, returnedToken)
		}
	}
	if !t.run(job) {
		return result{}, errTermEnded
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiver.RevocationLimit)
	defer cancel()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if t.recorded(e, k.RequestID) {
		return result{}, later(http.StatusServiceUnavailable, "not_revoked", busyPause, "the token is not revoked yet, the broker keeps trying, and it %s: %v", k.End(), err)
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

// revocation is that of the token of a request.
type revocation struct {
	entry     *entry
	requestID string
	accessor  string
	// reason is in the audit log with the request's transition, or for a request of an earlier
	// term with the revocation.
	reason string
	// recorded is set if the record had the token when the revocation began.
	recorded bool
}

func (t *term) revocation(e *entry, requestID, accessor, reason string) *revocation {
	return &revocation{entry: e, requestID: requestID, accessor: accessor, reason: reason, recorded: t.recorded(e, requestID)}
}

// revoke revokes the token of a request and forgets it, however long the backend refuses that:
// the token may be alive for as long. It returns at once if another job does so.
func (t *term) revoke(ctx context.Context, e *entry, requestID, accessor, reason string) {
	t.mu.Lock()
	another := t.revoking[requestID]
	t.revoking[requestID] = true
	t.mu.Unlock()
	if another {
		return
	}
	r := t.revocation(e, requestID, accessor, reason)
	quick, cancel := context.WithTimeout(ctx, revokeQuick)
	err := t.revokeWithin(quick, r)
	cancel()
	for err != nil && ctx.Err() == nil {
		t.unrevoked(r, err)
		if retry.Sleep(ctx, revokePause) == nil {
			err = t.laterTurns.take(ctx, func() error { return t.tryRevoke(ctx, r) })
		}
	}
	t.mu.Lock()
	delete(t.revoking, requestID)
	t.mu.Unlock()
	if err != nil && !t.recorded(e, requestID) { // then the next broker does not know it
		t.revokeNow(r)
	}
}

// revokeWithin revokes a token unless ctx ends before, or the backend refuses it permanently.
func (t *term) revokeWithin(ctx context.Context, r *revocation) error {
	policy := retry.Policy{Base: revokeBase, Max: revokeMax}
	return retry.Do(ctx, policy, t.Log, "revoke a token", consulutil.Classify, func(ctx context.Context) error {
		return t.firstTurns.take(ctx, func() error { return t.tryRevoke(ctx, r) })
	})
}

// tryRevoke asks the backend once to revoke a token, after it has recorded that.
func (t *term) tryRevoke(ctx context.Context, r *revocation) error {
	e := r.entry
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	unmarked := t.write(ctx, e, func(rec *Record) { rec.MarkRevoking(r.requestID) })
	t.mu.Lock()
	k := e.record.Find(r.requestID)
	if k != nil {
		r.accessor = k.Accessor // of the token, if it was redeemed meanwhile
	}
	t.mu.Unlock()
	if r.recorded && k == nil {
		return nil // another job has revoked it, or its life is over
	}
	err := t.Backend.Revoke(ctx, r.accessor)
	switch {
	case err != nil && unmarked != nil:
		return fmt.Errorf("%w, and the next leader does not know that: %w", err, unmarked)
	case err != nil:
		return err
	}
	if err := t.write(ctx, e, func(rec *Record) { rec.Remove(r.requestID) }); err != nil {
		return &unrecordedError{err}
	}
	if t.request(r.requestID) == nil || t.alarmedOf(r) {
		t.audit.write(line{
			Request: r.requestID, Task: e.record.TaskARN, Accessor: r.accessor, Decision: string(Revoked), Reason: r.reason,
		})
	}
	return nil
}

// unrecordedError means that a token is revoked and that its record remains.
type unrecordedError struct{ error }

func (e *unrecordedError) Unwrap() error { return e.error }

func (t *term) recorded(e *entry, requestID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.record.Find(requestID) != nil
}

// revokeNow revokes a token within a few seconds, when no job may do it, and reports whether it
// has.
func (t *term) revokeNow(r *revocation) bool {
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: revokeNowLimit}
	err := retry.Do(context.Background(), policy, t.Log, "revoke a token", consulutil.Classify, func(ctx context.Context) error {
		return t.Backend.Revoke(ctx, r.accessor)
	})
	if err != nil {
		t.unrevoked(r, err)
	}
	return err == nil
}

// unrevoked reports a token that may be alive although its revocation was requested, once in
// alarmPause.
func (t *term) unrevoked(r *revocation, err error) {
	if _, unrecorded := errors.AsType[*unrecordedError](err); unrecorded {
		return
	}
	if limited, ok := errors.AsType[*retry.GaveUpError](err); ok {
		err = limited.Err
	}
	t.mu.Lock()
	ended, message := false, "a token cannot be revoked, which is tried again every minute"
	if k := r.entry.record.Find(r.requestID); k != nil {
		ended, message = k.Ended(time.Now()), "a token cannot be revoked, and "+k.End()
	}
	t.mu.Unlock()
	if ended || !t.due(r.alarm()) {
		return
	}
	t.Metrics.revokeFailures.Add(1)
	t.audit.write(line{
		Request: r.requestID, Task: r.entry.record.TaskARN, Accessor: r.accessor, Decision: "not_revoked", Reason: err.Error(), Alarm: true,
	})
	t.Log.Error(message, logkey.Accessor, r.accessor, logkey.TaskARN, r.entry.record.TaskARN, logkey.Error, err)
}

// alarm is the key of the alarms about a revocation.
func (r *revocation) alarm() string { return "revoke " + r.requestID }

// alarmedOf reports whether the audit log has an alarm about a revocation.
func (t *term) alarmedOf(r *revocation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, alarmed := t.alarmed[r.alarm()]
	return alarmed
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
	t.endAll(e, tokens, newerToken)
}

// endAll ends the requests of tokens that are no longer the task's, and revokes the tokens.
func (t *term) endAll(e *entry, tokens []IssuedToken, reason string) {
	for _, k := range tokens {
		if r := t.request(k.RequestID); r == nil || !t.on(r, replaced, reason) {
			t.run(func(ctx context.Context) { t.revoke(ctx, e, k.RequestID, k.Accessor, reason) })
		}
	}
}
