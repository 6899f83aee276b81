package broker

import (
	"context"
	"errors"
	"maps"
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

// resume finishes what an earlier broker has started. Handles do not outlive it, so that a
// pending token will not be redeemed, unless that was under way: it is revoked later, so that
// no other token can follow the revocation.
func (t *term) resume(ctx context.Context) {
	for _, e := range t.entries() {
		t.mu.Lock()
		tokens := slices.Clone(e.record.Tokens)
		t.mu.Unlock()
		var replaced []IssuedToken
		for _, k := range tokens {
			switch k.Status {
			case TokenLive:
			case TokenReplaced:
				replaced = append(replaced, k)
			default:
				t.run(func(ctx context.Context) {
					if k.Status != TokenPending || retry.Sleep(ctx, redemptionLimit) == nil {
						t.revoke(ctx, e, k.RequestID, k.Accessor, unfinished)
					}
				})
			}
		}
		if len(replaced) > 0 {
			t.run(func(ctx context.Context) { t.revokeReplaced(ctx, e, replaced) })
		}
	}
}

func (t *term) entries() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.tasks))
}

// sweep ends tokens whose life or task is over, and forgets what is not needed. It looks
// at sweepWidth tasks at a time, so that requests of tasks find a place in the calls of
// DescribeTasks.
func (t *term) sweep(ctx context.Context) {
	var running sync.WaitGroup
	slots := make(chan struct{}, sweepWidth)
	tokens, now := 0, time.Now()
	for _, e := range t.entries() {
		t.mu.Lock()
		n := len(e.record.Tokens)
		for _, k := range e.record.Tokens {
			if !k.Ended(now) {
				tokens++
			}
		}
		t.mu.Unlock()
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
			t.examine(ctx, e)
		})
	}
	running.Wait()
	t.Metrics.tokens.Set(float64(tokens))
	t.forget(time.Now())
}

// sweepWidth is two calls of DescribeTasks: one is under way while the next one fills.
const sweepWidth = 2 * batchSize

// examine looks at the tokens of one task.
func (t *term) examine(ctx context.Context, e *entry) {
	if err := t.expire(ctx, e); err != nil && ctx.Err() == nil {
		t.Log.Warn("the record of a task was not updated", logkey.TaskARN, e.record.TaskARN, logkey.Error, err)
	}
	task, err := t.lookups.task(ctx, e.record.Cluster, e.record.TaskARN)
	if ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	tokens := slices.Clone(e.record.Tokens)
	gone := e.lost(task, err, time.Now())
	t.mu.Unlock()
	for _, k := range tokens {
		reason := gone
		switch {
		case reason != "":
		case err == nil && moved(task, k.Address):
			reason = "the task has another address"
		case k.Status == TokenRevoking: // also if no job does it
			reason = unfinished
		}
		switch r := t.request(k.RequestID); {
		case reason == "":
			if r != nil && err == nil {
				t.on(r, vouched, "") // when ECS did not answer after the delivery
			}
		case r != nil && t.on(r, taskGone, reason):
		case k.Status != TokenPending: // else resume revokes it
			t.run(func(ctx context.Context) { t.revoke(ctx, e, k.RequestID, k.Accessor, reason) })
		}
	}
}

func (t *term) request(id string) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests[id]
}

// lost returns why a task is over, or nothing. A task that is being stopped keeps its
// token, and so does one that ECS does not answer for. A task that ECS does not know, also
// because its cluster was deleted, is over when that lasts for sweepInterval, because
// DescribeTasks is eventually consistent.
func (e *entry) lost(task *types.Task, err error, now time.Time) string {
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
func (t *term) expire(ctx context.Context, e *entry) error {
	now := time.Now()
	t.mu.Lock()
	tokens := slices.DeleteFunc(slices.Clone(e.record.Tokens), func(k IssuedToken) bool { return !k.Due(now) })
	t.mu.Unlock()
	for _, k := range tokens {
		var renewed time.Time
		alive := false
		if r, ok := t.Backend.(backend.Renewer); ok && k.Renewable {
			var err error
			if renewed, alive, err = r.Expiry(ctx, k.Accessor); err != nil {
				return err
			}
		}
		err := t.save(ctx, e, func(rec *Record) {
			if found := rec.Find(k.RequestID); found != nil && alive {
				found.Expires = renewed
			} else if k.Renewable || now.Sub(k.Expires) >= clockGrace {
				rec.Remove(k.RequestID)
			}
		})
		if err != nil {
			return err
		}
		if r := t.request(k.RequestID); r != nil && !alive {
			t.on(r, tokenEnded, "the token expired")
		}
	}
	return nil
}

// forget drops finished requests and idle tasks.
func (t *term) forget(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.requests, func(_ string, r *request) bool { return r.state.final() && now.Sub(r.ended) > retention })
	maps.DeleteFunc(t.alarmed, func(_ string, at time.Time) bool { return now.Sub(at) >= alarmPause })
	maps.DeleteFunc(t.tasks, func(_ string, e *entry) bool {
		maps.DeleteFunc(e.nonces, func(_ string, at time.Time) bool { return now.Sub(at) > regrantWindow })
		return len(e.record.Tokens) == 0 && now.Sub(e.used) > regrantWindow && (e.live == nil || !e.live.state.live()) && e.settled()
	})
}
