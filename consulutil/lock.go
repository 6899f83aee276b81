package consulutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// lockTTL is how long a session lives without renewal: the shortest that Consul
	// takes (session_ttl_min). Consul may take twice as long to end it.
	lockTTL = 10 * time.Second
	// LockDelay is how long Consul gives the lock to no session after the one that held it has
	// expired.
	LockDelay = 15 * time.Second
	// lockWait bounds a blocking query on the key, and so the pause between two attempts to
	// lock it.
	lockWait = 5 * time.Second
	// monitorRetries is how often api.Lock reads the key again after an error, every
	// 2 s, before it considers the lock lost: about as long as the session lives.
	monitorRetries = 5
	// holderLength is how much of a holder's name is shown: a task's ARN is shorter.
	holderLength = 512
	// acquireGrace is for a request that may lock the key when the context ends.
	acquireGrace = time.Second
	// releaseLimit bounds the release: the command has 5 s to stop.
	releaseLimit = 2 * time.Second
)

// LockOptions are what a Lock needs.
type LockOptions struct {
	// Consul makes the lock's own client, whose requests are short.
	Consul Options
	// Key is the KV key. KeyRule is the ACL rule that it needs, for errors.
	Key, KeyRule string
	// Session names the session for operators.
	Session string
	// Holder is the value of the key: it names the leader for operators.
	Holder string
	Log    hclog.Logger
}

// SessionRule is the ACL rule that sessions need, and so locks.
const SessionRule = `session_prefix "" { policy = "write" }`

// Lock is the lock of a leader, an api.Lock. Lead may be called again after
// it has returned, and by one goroutine at a time.
type Lock struct {
	LockOptions
	client  *api.Client
	session string // of the last attempt, if it may be alive
	leads   atomic.Pointer[string]
}

// LeadershipLostError is returned by a leader that lost the lock.
type LeadershipLostError struct{ Err error }

func (e *LeadershipLostError) Error() string { return "leadership lost: " + e.Err.Error() }
func (e *LeadershipLostError) Unwrap() error { return e.Err }

// SessionID returns the ID of the session that has locked the key while the function of Lead runs, and
// empty otherwise. A write in a transaction with api.KVCheckSession fails in a process
// that has lost the lock.
func (l *Lock) SessionID() string {
	if s := l.leads.Load(); s != nil {
		return *s
	}
	return ""
}

// NewLock makes no request.
func NewLock(o LockOptions) (*Lock, error) {
	o.Consul.Timeout, o.Consul.WaitTime = RequestTimeout, lockWait
	client, err := NewClient(o.Consul)
	return &Lock{LockOptions: o, client: client}, err
}

// Lead waits for the lock, calls lead while this process holds it, and releases it.
// The context of lead ends when the lock is lost. After a pause of the process that
// may be 15 s later than another process can have it: what lead does must be harmless
// beside another leader. While another process leads, standby is called with its name
// about every 5 s; an error of it ends the wait. The result is that error, the
// context's, one of Consul (Classify), a *LeadershipLostError, or lead's.
func (l *Lock) Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error {
	defer func() {
		if ctx.Err() != nil {
			l.release(ctx) // also a lock whose answer did not arrive
		}
	}()
	var index uint64
	for {
		pair, next, err := l.read(ctx, index)
		if err != nil {
			return err
		}
		if next < index { // the servers were restored from a snapshot
			next = 0
		}
		index = next
		if pair != nil && pair.Session != "" && pair.Session != l.session {
			if err := standby(holder(pair)); err != nil {
				l.release(ctx)
				return err
			}
			continue
		}
		if led, err := l.contend(ctx, lead); led || err != nil {
			return err
		}
		// Another process was faster, which the next read returns at once, or the lock's
		// delay has not passed.
	}
}

// holder returns the value of a locked key as far as it may be logged: any client that may write
// the key may have written it.
func holder(pair *api.KVPair) string {
	return strings.ToValidUTF8(string(pair.Value[:min(len(pair.Value), holderLength)]), "")
}

// read reads the key. With the index of an earlier read it waits for a change, about
// lockWait at most.
func (l *Lock) read(ctx context.Context, index uint64) (*api.KVPair, uint64, error) {
	pair, meta, err := l.client.KV().Get(l.Key, (&api.QueryOptions{WaitIndex: index}).WithContext(ctx))
	if err != nil {
		return nil, 0, fmt.Errorf("read the lock %q: %w", l.Key, explainLock(err, l.KeyRule))
	}
	return pair, meta.LastIndex, nil
}

// contend attempts to lock the key. With the lock it calls lead and reports true.
func (l *Lock) contend(ctx context.Context, lead func(context.Context) error) (led bool, err error) {
	if err := l.openSession(ctx); err != nil {
		return false, err
	}
	term, end := context.WithCancelCause(ctx)
	defer end(nil)
	renew := l.write(term)
	go func(session string) {
		err := l.client.Session().RenewPeriodic(lockTTL.String(), session, renew, nil)
		// nil after a pause
		end(&LeadershipLostError{fmt.Errorf("renew the leader's session: %w", cmp.Or(err, api.ErrSessionExpired))})
	}(l.session)
	unlocked, err := l.lock(term)
	if unlocked == nil || err != nil {
		return false, err
	}
	go func() {
		select {
		case <-unlocked:
			end(&LeadershipLostError{fmt.Errorf("the lock %q was deleted or acquired by another session, or cannot "+
				"be read", l.Key)})
		case <-term.Done():
		}
	}()
	l.leads.Store(new(l.session))
	defer l.leads.Store(nil)
	err = lead(term)
	if lost, ok := errors.AsType[*LeadershipLostError](context.Cause(term)); ok {
		return true, lost // the next attempt uses the session if it is alive
	}
	l.release(ctx)
	return true, err
}

// openSession makes a session, or renews that of the last attempt: another one would
// have to wait for its end.
func (l *Lock) openSession(ctx context.Context) error {
	if l.session != "" {
		entry, _, err := l.client.Session().Renew(l.session, l.write(ctx))
		if err != nil {
			return fmt.Errorf("renew the leader's session: %w", err)
		}
		if entry != nil {
			return nil
		}
		l.session = ""
	}
	// Without the checks that Consul adds by itself: the session would end with the
	// server that made it.
	id, _, err := l.client.Session().CreateNoChecks(&api.SessionEntry{
		Name: l.Session, TTL: lockTTL.String(), LockDelay: LockDelay, Behavior: api.SessionBehaviorRelease,
	}, l.write(ctx))
	if err != nil {
		return fmt.Errorf("create the leader's session: %w", explainLock(err, SessionRule))
	}
	l.session = id
	return nil
}

// lock attempts to lock the key once. The channel is nil if the key was not locked, and
// closed when the lock is lost.
//
// The key is acquired before api.Lock finds that its session has it, and watches it: of
// a refusal api.Lock has only the text.
func (l *Lock) lock(ctx context.Context) (<-chan struct{}, error) {
	lock, err := l.client.LockOpts(&api.LockOptions{
		Key: l.Key, Value: []byte(l.Holder), Session: l.session,
		LockTryOnce: true, LockWaitTime: lockWait, MonitorRetries: monitorRetries,
	})
	if err != nil {
		return nil, err
	}
	type result struct {
		unlocked <-chan struct{}
		err      error
	}
	done := make(chan result, 1)
	pair := &api.KVPair{Key: l.Key, Value: []byte(l.Holder), Session: l.session, Flags: api.LockFlagValue}
	go func() {
		acquired, _, err := l.client.KV().Acquire(pair, nil)
		r := result{err: err}
		if acquired {
			r.unlocked, r.err = lock.Lock(ctx.Done())
		}
		done <- r
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		// Without the context, as in api.Lock, requests end with the client's timeout.
		select {
		case <-done:
		case <-time.After(acquireGrace):
		}
		return nil, nil
	}
	if r.err != nil {
		return nil, fmt.Errorf("lock %q: %w", l.Key, explainLock(r.err, l.KeyRule))
	}
	return r.unlocked, nil
}

// release releases the lock and ends the session. The key comes first: a session that
// ends while it holds the key leaves the lock's delay to the next leader.
func (l *Lock) release(ctx context.Context) {
	if l.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	pair := &api.KVPair{Key: l.Key, Session: l.session, Flags: api.LockFlagValue}
	_, _, err := l.client.KV().Release(pair, l.write(ctx))
	if err == nil {
		_, err = l.client.Session().Destroy(l.session, l.write(ctx))
	}
	l.session = ""
	if err != nil {
		l.Log.Warn("the leader's lock was not released; it expires with its session",
			logkey.Remaining, 2*lockTTL+LockDelay, logkey.Error, err)
	}
}

func (l *Lock) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{}).WithContext(ctx)
}

// explainLock adds what to do about a refusal of Consul.
func explainLock(err error, rule string) error { return Advise(Needs(err, rule)) }
