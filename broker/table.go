package broker

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// taskTable has the tasks, requests and tokens of a leadership.
type taskTable struct {
	// mu guards the maps, and what is in them as their types say.
	mu       sync.Mutex
	tasks    map[string]*entry // by ARN
	requests map[string]*request
	holders  map[string]*entry // of tokens, by the hashes of their secrets
}

func newTaskTable() *taskTable {
	return &taskTable{tasks: map[string]*entry{}, requests: map[string]*request{}, holders: map[string]*entry{}}
}

// all returns the tasks.
func (t *taskTable) all() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.tasks))
}

// entry returns the task of a request.
func (t *taskTable) entry(r *request) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks[r.in.TaskARN]
}

func (t *taskTable) request(id string) *request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests[id]
}

// tokenOf finds a token of any task by its secret, also one that is replaced or being revoked.
func (t *taskTable) tokenOf(bearer secret.Value) (*entry, IssuedToken, bool) {
	hash := hashOf(bearer)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.holders[hash]
	if e == nil {
		return nil, IssuedToken{}, false
	}
	i := slices.IndexFunc(e.record.Tokens, func(k IssuedToken) bool { return k.SecretHash == hash })
	return e, e.record.Tokens[i], true
}

// recorded reports whether a task's record has the token of a request.
func (t *taskTable) recorded(e *entry, requestID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.record.Find(requestID) != nil
}

// redeemed reports whether the handle of a request was exchanged for the token.
func (t *taskTable) redeemed(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.state.Redeemed
}

// presented reports whether the handle is being exchanged, or was.
func (t *taskTable) presented(r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.claimed || r.state.Redeemed
}

// wasDelivered reports whether the task had a token, as far as is known. The caller holds mu.
func (t *taskTable) wasDelivered(k IssuedToken) bool {
	r := t.requests[k.RequestID]
	return r == nil || r.confirmed
}

// byHandle finds an unsealed request: the original form of the push has no request ID. The caller
// holds mu.
func (t *taskTable) byHandle(hash [32]byte) *request {
	for _, r := range t.requests {
		if len(r.in.PublicKey) == 0 && r.handle == hash {
			return r
		}
	}
	return nil
}

// setRecord sets a task's record to what is stored.
func (t *taskTable) setRecord(e *entry, stored Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range e.record.Tokens {
		delete(t.holders, k.SecretHash)
	}
	for _, k := range stored.Tokens {
		if k.SecretHash != "" {
			t.holders[k.SecretHash] = e
		}
	}
	e.record.Tokens, e.record.Version = stored.Tokens, stored.Version
}

// forget drops finished requests and idle tasks.
func (t *taskTable) forget(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.requests, func(_ string, r *request) bool {
		return r.state.final() && now.Sub(r.ended) > retention
	})
	maps.DeleteFunc(t.tasks, func(_ string, e *entry) bool {
		maps.DeleteFunc(e.nonces, func(_ string, at time.Time) bool { return now.Sub(at) > regrantWindow })
		return len(e.record.Tokens) == 0 && now.Sub(e.used) > regrantWindow &&
			(e.live == nil || !e.live.state.live()) && e.settled()
	})
}
