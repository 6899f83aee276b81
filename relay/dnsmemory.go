package relay

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/simplelru"
)

const (
	// mostRemembered bounds the bytes of what is remembered, of which a reply costs entryCost
	// beside its message.
	mostRemembered = 1 << 20
	entryCost      = 256
	// rememberedFor is how old a reply may be that is given again.
	rememberedFor = 24 * time.Hour
)

// dnsMemory has the last reply of the servers to each question. What was used least recently
// is forgotten first.
type dnsMemory struct {
	mu   sync.Mutex
	size int
	all  *simplelru.LRU
}

// remembered is a message of a server.
type remembered struct {
	message []byte
	at      time.Time
}

// newDNSMemory returns an empty memory.
func newDNSMemory() *dnsMemory {
	m := &dnsMemory{}
	evicted := func(key, value any) { m.size -= cost(key.(question), value.(remembered)) }
	m.all, _ = simplelru.NewLRU(mostRemembered/entryCost, evicted) // the error is of a number below 1
	return m
}

// cost returns the bytes that a message takes.
func cost(q question, r remembered) int { return len(q.name) + len(r.message) + entryCost }

// put remembers the reply to a question in place of the one before.
func (m *dnsMemory) put(q question, message []byte, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Remove(q)
	r := remembered{message: message, at: now}
	m.all.Add(q, r)
	m.size += cost(q, r)
	for m.size > mostRemembered {
		m.all.RemoveOldest()
	}
}

// get returns the last reply to the question, and whether there is one.
func (m *dnsMemory) get(q question, now time.Time) (message []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.all.Get(q)
	if !ok || now.Sub(value.(remembered).at) >= rememberedFor {
		return nil, false
	}
	return value.(remembered).message, true
}
