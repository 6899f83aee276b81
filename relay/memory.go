package relay

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// memoryLimit bounds the resources that a memory keeps, and one message.
	memoryLimit = 32 << 20
	// patience is how long a new Envoy waits for a server's first message, while there is a
	// memory.
	patience = 500 * time.Millisecond
	// greeting is the time in which the first requests of an Envoy show whether it has its
	// configuration: it sends all of them at once.
	greeting = 50 * time.Millisecond
	// ldsType is that of the resources that Envoy asks for last: with them it serves.
	ldsType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	// everything is the name that stands for all resources of a type.
	everything = "*"
)

// memory keeps the resources that Envoy got last, for an Envoy that starts while no server
// serves. It holds private keys: it is written nowhere, and ends with the process.
type memory struct {
	log   hclog.Logger
	limit int

	mu        sync.Mutex
	resources map[string]map[string]resource // by type URL and name
	size      int
	updated   time.Time // the last message of a server
	// off reports that nothing is remembered any more.
	off bool
	// denied reports that a server has refused the token since the last message.
	denied bool
	// unserved is when a stream began to wait for a server that serves; zero while one does.
	unserved time.Time
	// answering reports that streams are answered from here.
	answering bool
}

func newMemory(log hclog.Logger) *memory {
	return &memory{log: log, limit: memoryLimit, resources: map[string]map[string]resource{}}
}

// ready reports whether an Envoy that starts would serve with what is remembered. What a
// server has refused is not answered from here.
func (m *memory) ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.off && !m.denied && len(m.resources[ldsType]) > 0
}

// opened returns how long a new stream waits for a server, before it is answered from here.
func (m *memory) opened() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unserved.IsZero() {
		m.unserved = time.Now()
	}
	return max(greeting, patience-time.Since(m.unserved))
}

// waited returns how long no server has served.
func (m *memory) waited() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unserved.IsZero() {
		return 0
	}
	return time.Since(m.unserved)
}

// served records a server's first message in a stream.
func (m *memory) served() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answering {
		m.log.Info("a Consul server serves again", logkey.Elapsed, time.Since(m.unserved).Round(time.Millisecond))
	}
	m.unserved, m.answering, m.denied = time.Time{}, false, false
}

// answers records a stream that is answered from here.
func (m *memory) answers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.answering {
		m.answering = true
		m.log.Warn("no Consul server serves, answering Envoy from the resources that it got last",
			logkey.Age, time.Since(m.updated).Round(time.Second))
	}
}

// refused records the status with which a server ended a stream.
func (m *memory) refused(code string) {
	if code == unauthenticated || code == permissionDenied {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.denied = true
	}
}

// forget ends the memory, for that reason.
func (m *memory) forget(reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.off {
		m.off, m.resources, m.size = true, nil, 0
		m.log.Warn("Envoy's resources are not remembered: after a crash it waits for a Consul server",
			logkey.Reason, reason)
	}
}

// remembers reports whether resources are kept.
func (m *memory) remembers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.off
}

// update takes a message of a server. When initial is not nil, Envoy has just these
// resources of the type, before the message. It is an error when there are too many.
func (m *memory) update(r discoveryResponse, initial map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		return nil
	}
	m.updated = time.Now()
	if initial != nil {
		m.remove(r.kind, func(name string) bool { _, ok := initial[name]; return !ok })
	}
	m.remove(r.kind, func(name string) bool { return slices.Contains(r.removed, name) })
	if m.resources[r.kind] == nil {
		m.resources[r.kind] = map[string]resource{}
	}
	for _, one := range r.resources {
		m.size += len(one.message) - len(m.resources[r.kind][one.name].message)
		m.resources[r.kind][one.name] = one
	}
	if m.size > m.limit {
		return fmt.Errorf("they have %d bytes, more than %d", m.size, m.limit)
	}
	return nil
}

// unsubscribed removes what Envoy has no use for any more.
func (m *memory) unsubscribed(q discoveryRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(q.kind, func(name string) bool { return slices.Contains(q.unsubscribe, name) })
}

// remove removes resources of the type. The caller holds the lock.
func (m *memory) remove(kind string, which func(name string) bool) {
	maps.DeleteFunc(m.resources[kind], func(name string, one resource) bool {
		gone := which(name)
		if gone {
			m.size -= len(one.message)
		}
		return gone
	})
}

// answer returns the response to a request, as a server would make it; first reports that
// the request is the stream's first one for the type. Nothing is removed from an Envoy that
// has it, and it gets nothing that it has already.
func (m *memory) answer(q discoveryRequest, first bool) (r discoveryResponse, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.kind = q.kind
	all := slices.Contains(q.subscribe, everything) || first && len(q.subscribe) == 0
	names := q.subscribe
	if all {
		names = append(slices.Sorted(maps.Keys(m.resources[q.kind])), q.subscribe...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	for _, name := range names {
		one, remembered := m.resources[q.kind][name]
		version, has := q.versions[name]
		switch {
		case remembered && !(has && version == one.version):
			r.resources = append(r.resources, one)
		case !remembered && !has && name != everything:
			r.removed = append(r.removed, name)
		}
	}
	return r, len(r.resources) > 0 || len(r.removed) > 0 || all && len(q.versions) == 0
}
