package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// hold calls lead while the session lives and the key is ours.
func (l *Lock) hold(ctx context.Context, lead func(context.Context) error) error {
	term, end := context.WithCancelCause(ctx)
	lose := func(err error) {
		l.Guard.close() // before lead hears of it
		end(&LostError{err})
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.keep(term, lose) })
	wg.Go(func() { l.attend(term, lose) })
	err := lead(term)
	var lost *LostError
	isLost := errors.As(context.Cause(term), &lost)
	l.Guard.close() // before anybody else can have the lock
	end(context.Canceled)
	wg.Wait()
	if isLost {
		return lost // the session may come back, acquire asks
	}
	l.release(ctx)
	return err
}

// keep renews the session until ctx ends, and loses the lead when it cannot.
func (l *Lock) keep(ctx context.Context, lose func(error)) {
	for wait := TTL / 3; retry.Sleep(ctx, wait) == nil; {
		left := l.Guard.Remaining()
		if left <= 0 {
			lose(fmt.Errorf("the lease was not renewed for %s", TTL))
			return
		}
		sent := l.Guard.clock()
		once, cancel := context.WithTimeout(ctx, min(left, TTL/3))
		known, err := l.renewSession(once)
		cancel()
		switch {
		case err == nil && !known:
			lose(errors.New("its session was ended"))
			return
		case err == nil:
			l.Guard.extend(sent + TTL)
			wait = TTL / 3
		case ctx.Err() == nil:
			l.Log.Warn("renewal of the leader's lease failed", logkey.Remaining, l.Guard.Remaining().Round(time.Millisecond), logkey.Error, err)
			wait = min(contendPause, max(l.Guard.Remaining(), time.Millisecond))
		}
	}
}

// attend loses the lead when the key is not ours any more: a session that lives
// does not prove that it is, as an operator may delete keys.
func (l *Lock) attend(ctx context.Context, lose func(error)) {
	var index uint64
	for ctx.Err() == nil {
		pair, next, err := l.read(ctx, index)
		switch {
		case err != nil:
			retry.Sleep(ctx, contendPause) // the lease runs out by itself
			next = 0
		case pair == nil:
			lose(fmt.Errorf("the lock %q was deleted", l.Key))
			return
		case pair.Session != l.session:
			lose(fmt.Errorf("the lock %q was taken away", l.Key))
			return
		}
		if next < index { // the servers were restored: begin anew
			next = 0
		}
		index = next
	}
}

// release lets the next leader begin at once: a key that is unlocked has no
// delay, as that of a session that is destroyed has. What fails ends by itself.
func (l *Lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	session := l.session
	l.session = ""
	_, _, err := l.Client.KV().Release(&api.KVPair{Key: l.Key, Session: session}, l.write(ctx))
	if err == nil {
		_, err = l.Client.Session().Destroy(session, l.write(ctx))
	}
	if err != nil {
		l.Log.Warn("the leader's lock was not released; it expires with its session", logkey.Remaining, 2*TTL+LockDelay, logkey.Error, err)
	}
}
