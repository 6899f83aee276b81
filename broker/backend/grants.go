package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
)

// grants are those that this process has issued, and what became of them.
type grants struct {
	mu     sync.Mutex
	issued expiring[*grant]
}

type grant struct {
	expires          time.Time
	claimed, revoked bool
	// made is set while a token is being made, and after an attempt that may have made one.
	made bool
}

// forgetAfter is how long an expired grant is remembered. A redemption that was under
// way when it expired has ended by then.
const forgetAfter = time.Minute

// expiring are entries that expire.
type expiring[V any] struct {
	all map[string]V
	// most is how many may be there before the expired ones are looked for.
	most int
}

// fewest is how many entries may always be there.
const fewest = 1000

// purge comes before an addition. It removes expired entries only when there are twice as many as
// it has left the last time: otherwise each addition would look at all of them.
func (e *expiring[V]) purge(expired func(V) bool) {
	if e.all == nil {
		e.all, e.most = map[string]V{}, fewest
	}
	if len(e.all) < e.most {
		return
	}
	maps.DeleteFunc(e.all, func(_ string, v V) bool { return expired(v) })
	e.most = max(fewest, 2*len(e.all))
}

// issue makes a grant for a request.
func (p *grants) issue(r Request, accessor string, ttl time.Duration) Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.issued.purge(func(g *grant) bool { return now.After(g.expires.Add(forgetAfter)) })
	expires := now.Add(cmp.Or(ttl, GrantTTL))
	p.issued.all[accessor] = &grant{expires: expires}
	return Grant{Request: r, Accessor: accessor, Expires: expires}
}

// claim lets one caller redeem a grant. It reports whether an earlier attempt may have made a token.
func (p *grants) claim(accessor string) (before bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.issued.all[accessor]
	switch {
	case g == nil, g.claimed, g.revoked:
		return false, ErrUsed
	case !time.Now().Before(g.expires):
		return false, ErrExpired
	}
	before = g.made
	g.claimed, g.made = true, true
	return before, nil
}

// release records that a redemption has failed: whether it may be repeated, and whether there may
// be a token.
func (p *grants) release(accessor string, repeat, made bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.issued.all[accessor]; g != nil {
		g.claimed, g.made = !repeat, made
	}
}

// revoke prevents the redemption of a grant, also of one that is under way. It reports
// whether there may be a token.
func (p *grants) revoke(accessor string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.issued.all[accessor]
	if g == nil {
		return true // another process has issued it
	}
	g.revoked = true
	return g.made
}

func (p *grants) wasRevoked(accessor string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.issued.all[accessor]
	return g != nil && g.revoked
}

// redeem takes a grant and creates its token; it gives the grant back if that fails for
// a reason that may pass. The end of ctx does not cut create off, only the client's
// timeout does: an answer that is not read would leave a token without an owner. If the
// grant is revoked meanwhile, undo removes the token.
func (p *grants) redeem(
	ctx context.Context, g Grant, create func(context.Context) (Token, error), undo func(context.Context, string) error,
) (Token, error) {
	op := fmt.Sprintf("redeem the grant of task %s", g.Request.Task.ARN)
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	before, err := p.claim(g.Accessor)
	if err != nil {
		return Token{}, refused(op, err, "")
	}
	ctx = context.WithoutCancel(ctx)
	token, err := create(ctx)
	switch {
	case err != nil:
		repeat := consulutil.Classify(err).Retryable()
		p.release(g.Accessor, repeat, before || repeat || errors.Is(err, ErrUsed))
		return Token{}, err
	case p.wasRevoked(g.Accessor):
		return Token{}, errors.Join(refused(op, ErrUsed, ""), undo(ctx, token.Accessor))
	}
	return token, nil
}
