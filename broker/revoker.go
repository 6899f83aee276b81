package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// revoker revokes tokens until the backend has confirmed it.
type revoker struct {
	opt     *Options
	audit   *audit
	table   *taskTable
	records *recorder
	jobs    *jobs
	alarms  *alarms

	// firstSlots are for revocations that were requested within revokeQuick, laterSlots for the
	// others, so that those that are refused for long do not hold them back.
	firstSlots, laterSlots slots

	mu      sync.Mutex
	claimed map[string]bool // requests whose token a job revokes
}

// revocation is that of the token of a request.
type revocation struct {
	entry     *entry
	requestID string
	accessor  string
	// reason is in the audit log with the request's transition, or for a request of an earlier
	// leader with the revocation.
	reason string
	// recorded is set if the record had the token when the revocation began.
	recorded bool
}

// alarm returns the key of the alarms about a revocation.
func (r *revocation) alarm() string { return "revoke " + r.requestID }

// adopt gives a backend that revokes a token with its secret only the secret of one that
// an earlier broker has made.
func (v *revoker) adopt(k IssuedToken, held secret.Value) {
	if a, ok := v.opt.Backend.(backend.Adopter); ok {
		a.Adopt(backend.Token{Secret: held, Accessor: k.Accessor, Expires: k.Expires})
	}
}

// start revokes a token in a job. It returns false when the leadership has ended.
func (v *revoker) start(r revocation) bool {
	return v.jobs.start(func(ctx context.Context) { v.revoke(ctx, r) })
}

// claim reports whether no other job revokes the token of a request. Then release is due.
func (v *revoker) claim(requestID string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.claimed[requestID] {
		return false
	}
	v.claimed[requestID] = true
	return true
}

func (v *revoker) release(requestID string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.claimed, requestID)
}

// revoke revokes the token of a request and forgets it, however long the backend refuses that:
// the token may be alive for as long. It returns at once if another job does so.
func (v *revoker) revoke(ctx context.Context, r revocation) {
	if !v.claim(r.requestID) {
		return
	}
	quick, cancel := context.WithTimeout(ctx, revokeQuick)
	err := v.revokeWithin(quick, &r)
	cancel()
	for err != nil && ctx.Err() == nil {
		v.reportFailure(&r, err)
		if retry.Sleep(ctx, revokePause) == nil {
			err = v.laterSlots.call(ctx, func() error { return v.tryRevoke(ctx, &r) })
		}
	}
	v.release(r.requestID)
	if err != nil && !v.table.recorded(r.entry, r.requestID) { // then the next broker does not know it
		v.revokeNow(&r)
	}
}

// revokeWithin revokes a token unless ctx ends before, or the backend refuses it permanently.
func (v *revoker) revokeWithin(ctx context.Context, r *revocation) error {
	r.recorded = v.table.recorded(r.entry, r.requestID)
	policy := retry.Policy{Base: revokeBase, Max: revokeMax}
	return retry.Do(ctx, policy, v.opt.Log, "revoke a token", consulutil.Classify, func(ctx context.Context) error {
		return v.firstSlots.call(ctx, func() error { return v.tryRevoke(ctx, r) })
	})
}

// tryRevoke asks the backend once to revoke a token, after it has recorded that.
func (v *revoker) tryRevoke(ctx context.Context, r *revocation) error {
	e := r.entry
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	unmarked := v.records.write(ctx, e, func(rec *Record) { rec.MarkRevoking(r.requestID) })
	v.table.mu.Lock()
	k := e.record.Find(r.requestID)
	if k != nil {
		r.accessor = k.Accessor // of the token, if it was redeemed meanwhile
	}
	v.table.mu.Unlock()
	if r.recorded && k == nil {
		return nil // another job has revoked it, or its life is over
	}
	err := v.opt.Backend.Revoke(ctx, r.accessor)
	switch {
	case err != nil && unmarked != nil:
		return fmt.Errorf("%w, and the next leader does not know that: %w", err, unmarked)
	case err != nil:
		return err
	}
	if err := v.records.write(ctx, e, func(rec *Record) { rec.Remove(r.requestID) }); err != nil {
		return &unrecordedError{err}
	}
	if v.table.request(r.requestID) == nil || v.alarms.wasRaised(r.alarm()) {
		v.audit.write(line{
			Request: r.requestID, Task: e.record.TaskARN, Accessor: r.accessor, Decision: string(Revoked),
			Reason: r.reason,
		})
	}
	return nil
}

// unrecordedError means that a token is revoked and that its record remains.
type unrecordedError struct{ err error }

func (e *unrecordedError) Error() string { return e.err.Error() }

func (e *unrecordedError) Unwrap() error { return e.err }

// revokeNow revokes a token within a few seconds, when no job may do it, and reports whether it
// has.
func (v *revoker) revokeNow(r *revocation) bool {
	policy := retry.Policy{Base: revokeBase, Max: revokeMax, Limit: revokeNowLimit}
	revoke := func(ctx context.Context) error { return v.opt.Backend.Revoke(ctx, r.accessor) }
	err := retry.Do(context.Background(), policy, v.opt.Log, "revoke a token", consulutil.Classify, revoke)
	if err != nil {
		v.reportFailure(r, err)
	}
	return err == nil
}

// reportFailure reports a token that may be alive although its revocation was requested, once in
// alarmPause.
func (v *revoker) reportFailure(r *revocation, err error) {
	if _, unrecorded := errors.AsType[*unrecordedError](err); unrecorded {
		return
	}
	if limited, ok := errors.AsType[*retry.GaveUpError](err); ok {
		err = limited.Err
	}
	v.table.mu.Lock()
	ended, message := false, "a token cannot be revoked, which is tried again every minute"
	if k := r.entry.record.Find(r.requestID); k != nil {
		ended, message = k.Ended(time.Now()), "a token cannot be revoked, and "+k.End()
	}
	v.table.mu.Unlock()
	if ended || !v.alarms.raise(r.alarm()) {
		return
	}
	v.opt.Metrics.revokeFailures.Add(1)
	task := r.entry.record.TaskARN
	v.audit.write(line{
		Request: r.requestID, Task: task, Accessor: r.accessor, Decision: "not_revoked", Reason: err.Error(),
		Alarm: true,
	})
	v.opt.Log.Error(message, logkey.Accessor, r.accessor, logkey.TaskARN, task, logkey.Error, err)
}
