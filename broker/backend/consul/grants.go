package consul

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/meshtask/consul-ecs/broker/backend"
)

// grants are those that were issued here and not redeemed yet, until they expire.
type grants struct {
	mu      sync.Mutex
	pending map[string]time.Time
}

// issue makes a grant for a request.
func (p *grants) issue(r backend.Request, ttl time.Duration) backend.Grant {
	g := backend.Grant{Request: r, Accessor: uuid.NewString(), Expires: time.Now().Add(cmp.Or(ttl, backend.GrantTTL))}
	p.put(g)
	return g
}

// put adds a grant, or gives one back whose redemption failed.
func (p *grants) put(g backend.Grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.pending, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	if p.pending == nil {
		p.pending = map[string]time.Time{}
	}
	p.pending[g.Accessor] = g.Expires
}

// take removes a grant, for one caller only.
func (p *grants) take(g backend.Grant) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.pending[g.Accessor]
	delete(p.pending, g.Accessor)
	switch {
	case !time.Now().Before(g.Expires):
		return backend.ErrExpired
	case !ok:
		return backend.ErrUsed
	}
	return nil
}

// drop removes a grant and reports whether it was pending.
func (p *grants) drop(accessor string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.pending[accessor]
	delete(p.pending, accessor)
	return ok
}
