package broker

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// unfinished is the reason of revocations whose own is not known any more.
const unfinished = "an earlier broker has not finished its request or revocation"

// sweeper ends what a leadership finds at its beginning, and then the tokens of tasks that are over.
type sweeper struct{ lead *leadership }

// resume finishes what an earlier broker has started. Handles do not outlive it, so that a
// pending token will not be redeemed, unless that was under way: it is revoked later, so that
// no other token can follow the revocation.
func (s sweeper) resume(ctx context.Context) {
	for _, e := range s.lead.table.all() {
		s.lead.table.mu.Lock()
		tokens := slices.Clone(e.record.Tokens)
		s.lead.table.mu.Unlock()
		var replaced []IssuedToken
		for _, k := range tokens {
			switch k.Status {
			case TokenLive:
			case TokenReplaced:
				replaced = append(replaced, k)
			default:
				s.lead.jobs.start(func(ctx context.Context) {
					if k.Status != TokenPending || retry.Sleep(ctx, redemptionLimit) == nil {
						s.lead.revoker.revoke(ctx, revocation{entry: e, requestID: k.RequestID, accessor: k.Accessor,
							reason: unfinished})
					}
				})
			}
		}
		if len(replaced) > 0 {
			s.lead.jobs.start(func(ctx context.Context) { s.lead.revokeReplaced(ctx, e, replaced) })
		}
	}
}

// run sweeps every sweepInterval until the context ends.
func (s sweeper) run(ctx context.Context) {
	for retry.Sleep(ctx, sweepInterval) == nil {
		s.sweep(ctx)
	}
}

// sweep ends tokens whose life or task is over, and forgets what is not needed. It looks
// at sweepWidth tasks at a time, so that requests of tasks find a place in the calls of
// DescribeTasks.
func (s sweeper) sweep(ctx context.Context) {
	var running sync.WaitGroup
	slots := make(chan struct{}, sweepWidth)
	tokens, now := 0, time.Now()
	for _, e := range s.lead.table.all() {
		s.lead.table.mu.Lock()
		n := len(e.record.Tokens)
		for _, k := range e.record.Tokens {
			if !k.Ended(now) {
				tokens++
			}
		}
		s.lead.table.mu.Unlock()
		if n == 0 {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			running.Wait()
			return
		}
		running.Go(func() {
			defer func() { <-slots }()
			s.examine(ctx, e)
		})
	}
	running.Wait()
	s.lead.opt.Metrics.tokens.Set(float64(tokens))
	s.lead.table.forget(time.Now())
	s.lead.alarms.forget(time.Now())
}

// sweepWidth is two calls of DescribeTasks: one is under way while the next one fills.
const sweepWidth = 2 * batchSize

// examine looks at the tokens of one task.
func (s sweeper) examine(ctx context.Context, e *entry) {
	if err := s.expire(ctx, e); err != nil && ctx.Err() == nil {
		s.lead.opt.Log.Warn("the record of a task was not updated", logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
	}
	task, err := s.lead.lookups.task(ctx, e.record.Cluster, e.record.TaskARN)
	if ctx.Err() != nil {
		return
	}
	s.lead.table.mu.Lock()
	tokens := slices.Clone(e.record.Tokens)
	gone := e.goneReason(task, err, time.Now())
	s.lead.table.mu.Unlock()
	for _, k := range tokens {
		reason := gone
		switch {
		case reason != "":
		case err == nil && moved(task, k.Address):
			reason = "the task has another address"
		case k.Status == TokenRevoking: // also if no job does it
			reason = unfinished
		}
		switch r := s.lead.table.request(k.RequestID); {
		case reason == "":
			if r != nil && err == nil {
				s.lead.on(r, taskConfirmed, "") // when ECS did not answer after the delivery
			}
		case r != nil && s.lead.on(r, taskGone, reason):
		case k.Status != TokenPending: // else resume revokes it
			s.lead.revoker.start(revocation{entry: e, requestID: k.RequestID, accessor: k.Accessor, reason: reason})
		}
	}
}

// goneReason returns why a task is over, or nothing. A task that is being stopped keeps its
// token, and so does one that ECS does not answer for. A task that ECS does not know, also
// because its cluster was deleted, is over when that lasts for sweepInterval, because
// DescribeTasks is eventually consistent.
func (e *entry) goneReason(task *types.Task, err error, now time.Time) string {
	var answer *refusal
	if errors.As(err, &answer) && answer.status == http.StatusNotFound {
		if e.unseen.IsZero() {
			e.unseen = now
		}
		if now.Sub(e.unseen) >= sweepInterval {
			return "ECS does not know the task any more"
		}
		return ""
	}
	e.unseen = time.Time{}
	if err != nil {
		return ""
	}
	switch status := aws.ToString(task.LastStatus); status {
	case "DEPROVISIONING", "STOPPED", "DELETED":
		return "the task's status is " + status
	}
	return ""
}

// moved reports whether a task that has an address has another one.
func moved(task *types.Task, address string) bool {
	anywhere := Rules{Networks: []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}}
	ip, err := anywhere.address(task)
	return err == nil && ip.String() != address
}

// expire ends requests whose token has expired, and forgets the token after clockGrace. Of one
// that its holder renews, the backend knows the end.
func (s sweeper) expire(ctx context.Context, e *entry) error {
	now := time.Now()
	s.lead.table.mu.Lock()
	tokens := slices.DeleteFunc(slices.Clone(e.record.Tokens), func(k IssuedToken) bool { return !k.Due(now) })
	s.lead.table.mu.Unlock()
	for _, k := range tokens {
		var renewed time.Time
		alive := false
		if r, ok := s.lead.opt.Backend.(backend.Renewer); ok && k.Renewable {
			var err error
			if renewed, alive, err = r.Expiry(ctx, k.Accessor); err != nil {
				return err
			}
		}
		err := s.lead.records.save(ctx, e, func(rec *Record) {
			if found := rec.Find(k.RequestID); found != nil && alive {
				found.Expires = renewed
			} else if k.Renewable || now.Sub(k.Expires) >= clockGrace {
				rec.Remove(k.RequestID)
			}
		})
		if err != nil {
			return err
		}
		if r := s.lead.table.request(k.RequestID); r != nil && !alive {
			s.lead.on(r, tokenEnded, "the token expired")
		}
	}
	return nil
}
