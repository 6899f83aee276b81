package broker

import (
	"context"
	"net/http"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// postRevoke revokes the bearer for its holder, who may not be able to do that. Without
// success within receiver.RevocationLimit the attempts go on after the answer.
func (a endpoints) postRevoke(r *http.Request, from caller) (result, error) {
	bearer, err := bearerOf(r)
	if err != nil {
		return result{}, err
	}
	e, k, found := a.lead.table.tokenOf(bearer)
	switch {
	case !found:
		return result{}, refuse(http.StatusUnauthorized, receiver.UnknownToken,
			"the bearer is not a live token of this broker")
	case from.known() && from.client.String() != k.Address:
		if a.lead.alarms.raise("elsewhere " + k.RequestID) {
			a.lead.opt.Metrics.alarms.Add(1)
			a.lead.broker.audit.write(line{
				Request: k.RequestID, Task: e.record.TaskARN, Peer: from.peer.String(), Accessor: k.Accessor,
				Decision: "revocation_refused", Reason: "the token was presented from " + from.client.String(),
				Alarm: true,
			})
		}
		return result{}, refuse(http.StatusUnauthorized, "address", "the request does not come from the task's address")
	}
	a.lead.revoker.adopt(k, bearer)
	if given := a.lead.table.request(k.RequestID); given != nil {
		a.lead.on(given, returned, returnedToken)
	}
	revocation := revocation{entry: e, requestID: k.RequestID, accessor: k.Accessor, reason: returnedToken}
	done := make(chan error, 1)
	job := func(ctx context.Context) {
		limited, cancel := context.WithTimeout(ctx, receiver.RevocationLimit)
		err := a.lead.revoker.revokeWithin(limited, &revocation)
		cancel()
		if done <- err; err != nil {
			a.lead.revoker.revoke(ctx, revocation)
		}
	}
	if !a.lead.jobs.start(job) {
		return result{}, errNotLeader
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiver.RevocationLimit)
	defer cancel()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if a.lead.table.recorded(e, k.RequestID) {
		return result{}, later(http.StatusServiceUnavailable, "not_revoked", busyPause,
			"the token is not revoked yet, the broker keeps trying, and it %s: %v", k.End(), err)
	}
	return result{status: http.StatusOK, body: map[string]bool{"revoked": true}}, nil
}

// replace revokes the task's tokens before a confirmed one, after the overlap.
func (l *leadership) replace(ctx context.Context, e *entry, confirmed string) {
	var earlier []IssuedToken
	err := l.records.save(ctx, e, func(rec *Record) { earlier = rec.MarkReplaced(confirmed) })
	if err != nil && ctx.Err() == nil {
		l.opt.Log.Warn("a rotation was not recorded", logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
	}
	l.revokeReplaced(ctx, e, earlier)
}

// newerToken and returnedToken are reasons of revocations.
const newerToken, returnedToken = "the task has a newer token", "revoked by its holder"

func (l *leadership) revokeReplaced(ctx context.Context, e *entry, tokens []IssuedToken) {
	if len(tokens) == 0 || retry.Sleep(ctx, overlap) != nil {
		return
	}
	l.endAll(e, tokens, newerToken)
}

// endAll ends the requests of tokens that are no longer the task's, and revokes the tokens.
func (l *leadership) endAll(e *entry, tokens []IssuedToken, reason string) {
	for _, k := range tokens {
		if r := l.table.request(k.RequestID); r == nil || !l.on(r, replaced, reason) {
			l.revoker.start(revocation{entry: e, requestID: k.RequestID, accessor: k.Accessor, reason: reason})
		}
	}
}
