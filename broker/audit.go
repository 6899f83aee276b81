package broker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// line is one line of the audit log: a transition of a request, or an alarm. It has no
// secret; the handle is an HMAC of its hash, under a key that dies with the process.
type line struct {
	Time     time.Time `json:"time"`
	Request  string    `json:"request"`
	Task     string    `json:"task,omitempty"`
	Revision string    `json:"revision,omitempty"`
	IP       string    `json:"ip,omitempty"`
	Peer     string    `json:"peer,omitempty"`
	Policies []string  `json:"policies,omitempty"`
	TTL      string    `json:"ttl,omitempty"`
	Accessor string    `json:"accessor,omitempty"`
	Backend  string    `json:"backend,omitempty"`
	Handle   string    `json:"handle,omitempty"`
	// Decision is the phase after the transition, or what was done to a token.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Alarm    bool   `json:"alarm,omitempty"`
	Rotation bool   `json:"rotation,omitempty"`
	// Attempt counts pushes; Duration is in ms since the request arrived.
	Attempt  int   `json:"attempt,omitempty"`
	Duration int64 `json:"duration"`
	// ContradictingTags are tags of the task that contradict its revision.
	ContradictingTags []string `json:"contradicting_tags,omitempty"`
}

// audit writes lines. It is safe for concurrent use.
type audit struct {
	mu      sync.Mutex
	w       io.Writer
	backend string // its name
	key     [32]byte
	failed  func(error)
}

func newAudit(w io.Writer, backend string, failed func(error)) *audit {
	a := &audit{w: w, backend: backend, failed: failed}
	_, _ = rand.Read(a.key[:]) // never fails
	return a
}

// write writes a line, with the time and the backend.
func (a *audit) write(l line) {
	l.Time, l.Backend = time.Now(), a.backend
	text, err := json.Marshal(l)
	if err == nil {
		a.mu.Lock()
		_, err = a.w.Write(append(text, '\n'))
		a.mu.Unlock()
	}
	if err != nil {
		a.failed(err)
	}
}

// handle is how the log names a handle.
func (a *audit) handle(hash [sha256.Size]byte) string {
	if hash == ([sha256.Size]byte{}) {
		return ""
	}
	mac := hmac.New(sha256.New, a.key[:])
	mac.Write(hash[:])
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
