package relay

import (
	"sync"
	"time"
)

// history is how the servers have treated Envoy's streams. The zero value is ready, and
// safe for concurrent use.
type history struct {
	mu       sync.Mutex
	answered bool                // a server has served Envoy
	refusals map[string]struct{} // by address
	silences map[string]struct{} // by address, since a server has served
	leftAt   time.Time           // a server was left for the leader of another
}

// serves records that a server serves.
func (h *history) serves() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = true
	clear(h.silences)
}

// served reports whether any server has.
func (h *history) served() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered
}

// refused records a refusal, and returns the number of servers that have refused.
func (h *history) refused(address string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals == nil {
		h.refusals = map[string]struct{}{}
	}
	h.refusals[address] = struct{}{}
	return len(h.refusals)
}

// silent records that a server sent nothing.
func (h *history) silent(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silences == nil {
		h.silences = map[string]struct{}{}
	}
	h.silences[address] = struct{}{}
}

// limit returns how long a server has for its first message.
func (h *history) limit(address string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, silent := h.silences[address]; silent {
		return idleLimit
	}
	return messageLimit
}

// leaves records that a server is left for the leader of another.
func (h *history) leaves() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leftAt = time.Now()
}

// mayLeave reports whether that was long ago.
func (h *history) mayLeave() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.leftAt) >= leavePause
}
