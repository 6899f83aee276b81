package setup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Times of the lock.
const (
	// lockTTL is how long a session lives without renewal: the least that
	// Consul allows. Consul may take twice as long to notice.
	lockTTL = 10 * time.Second
	// lockMargin is reserved before the session can end, for the server to complete a
	// request that was cancelled here.
	lockMargin = 2 * time.Second
	// lockDelay keeps others out after a session that ended with the lock held.
	lockDelay = 5 * time.Second
	// lockWait bounds the wait for others: twice what a dead holder costs.
	lockWait = 60 * time.Second
	// lockPoll bounds one blocking query on the lock, well below the session's TTL and
	// the client's timeout.
	lockPoll = 3 * time.Second
)

// errLost is returned when the lock may have expired, as after a pause of the process.
var errLost = errors.New("the setup lock expired before the work was done")

// lock is the KV lock around all writes of setup. Consul's ACL API has no
// check-and-set, so reading and writing an auth method must be one step.
type lock struct {
	setup   *Setup
	session string
	// Until end no other process can hold the lock. It is on sinceBoot, which runs
	// while the process is stopped and the machine suspended.
	end time.Duration
}

// acquire waits until the lock is ours, at most lockWait. A dead holder's
// session ends by itself.
func (s *Setup) acquire(ctx context.Context) (*lock, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait,
		fmt.Errorf("not acquired within %s: another controller holds the lock, or Consul does not answer", lockWait))
	defer cancel()
	l := &lock{setup: s, end: sinceBoot() + lockTTL - lockMargin}
	var err error
	l.session, _, err = s.Client.Session().CreateNoChecks(&api.SessionEntry{
		Name: "consul-ecs setup of " + s.Wanted.Cluster, TTL: lockTTL.String(),
		LockDelay: lockDelay, Behavior: api.SessionBehaviorRelease,
	}, s.writeOptions(ctx, s.Wanted.globalScope()))
	if err != nil {
		return nil, fmt.Errorf("create a session for the setup lock: %w", s.explain(sessionObject(), err))
	}
	if err := l.take(ctx); err != nil {
		l.release(ctx)
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w; the last answer: %w", cause, err)
		}
		return nil, fmt.Errorf("take the setup lock %s: %w", s.Wanted.lockKey(), err)
	}
	return l, nil
}

// take tries until the key is ours.
func (l *lock) take(ctx context.Context) error {
	kv, scope := l.setup.Client.KV(), l.setup.Wanted.globalScope()
	for {
		ok, _, err := kv.Acquire(l.pair(), l.setup.writeOptions(ctx, scope))
		if err != nil {
			return l.setup.explain(lockObject(l.setup.Wanted), err)
		}
		if ok {
			return nil
		}
		if err := l.wait(ctx); err != nil {
			return err
		}
		if err := l.renew(ctx); err != nil {
			return err
		}
	}
}

// wait waits until the lock may be free.
func (l *lock) wait(ctx context.Context) error {
	kv, key := l.setup.Client.KV(), l.setup.Wanted.lockKey()
	options := l.setup.queryOptions(ctx, l.setup.Wanted.globalScope())
	pair, meta, err := kv.Get(key, options)
	if err == nil && pair != nil && pair.Session != "" {
		options.WaitIndex, options.WaitTime = meta.LastIndex, lockPoll
		_, _, err = kv.Get(key, options)
		if err == nil {
			return nil
		}
	}
	if err != nil {
		return l.setup.explain(lockObject(l.setup.Wanted), err)
	}
	// It is free and cannot be taken yet: the lock delay of a dead holder.
	return retry.Sleep(ctx, 100*time.Millisecond+rand.N(200*time.Millisecond))
}

// hold returns a context for one step under the lock, which ends before others can
// have the lock. It fails if they may have it already, as after a pause of the process.
func (l *lock) hold(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := l.renew(ctx); err != nil {
		return nil, nil, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, l.end-sinceBoot(), errLost)
	return bounded, cancel, nil
}

// renew renews the session when half of its time has passed, counted from before the
// request. When all of it may have passed, the lock may be lost.
func (l *lock) renew(ctx context.Context) error {
	switch left := l.end - sinceBoot(); {
	case left <= 0:
		return errLost
	case left > lockTTL/2:
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.end-sinceBoot(), errLost)
	defer cancel()
	end := sinceBoot() + lockTTL - lockMargin
	entry, _, err := l.setup.Client.Session().Renew(l.session, l.setup.writeOptions(ctx, l.setup.Wanted.globalScope()))
	switch {
	case err != nil:
		return fmt.Errorf("renew the session of the setup lock: %w", l.setup.explain(sessionObject(), err))
	case entry == nil:
		return errLost
	}
	l.end = end
	return nil
}

// release releases the lock: first the key, since a session that ends with it
// would leave the lock delay to the next one. What fails here ends by itself.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockMargin)
	defer cancel()
	options := l.setup.writeOptions(ctx, l.setup.Wanted.globalScope())
	_, _, err := l.setup.Client.KV().Release(l.pair(), options)
	_, destroyErr := l.setup.Client.Session().Destroy(l.session, options)
	if err := errors.Join(err, destroyErr); err != nil {
		l.setup.Log.Warn("setup lock was not released; it expires with its session",
			logkey.Path, l.setup.Wanted.lockKey(), logkey.Error, err)
	}
}

// pair returns the lock's key; its value names the holder, for operators.
func (l *lock) pair() *api.KVPair {
	return &api.KVPair{Key: l.setup.Wanted.lockKey(), Value: []byte(l.setup.Wanted.Cluster), Session: l.session}
}
