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
	// Omitted counts refused requests without a line since the last one that has one, and
	// Lost lines that could not be written.
	Omitted int `json:"omitted,omitempty"`
	Lost    int `json:"lost,omitempty"`
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

	// unwritten counts lines since the last one that was written, and torn is set when the last one
	// was written in part.
	unwritten int
	torn      bool
}

func newAudit(w io.Writer, backend string, failed func(error)) *audit {
	a := &audit{w: w, backend: backend, failed: failed}
	_, _ = rand.Read(a.key[:]) // never fails
	return a
}

// write writes a line.
func (a *audit) write(l line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.catchUp()
	if err == nil {
		err = a.append(l)
	}
	if err != nil {
		a.unwritten++
		a.failed(err)
	}
}

// resume tries to write again after a failure. It returns nil if the log can be written, as
// far as is known.
func (a *audit) resume() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.catchUp()
}

// catchUp writes how many lines were lost, if any were. The caller holds mu.
func (a *audit) catchUp() error {
	if a.unwritten == 0 {
		return nil
	}
	err := a.append(line{Decision: "lines_lost", Lost: a.unwritten})
	if err == nil {
		a.unwritten = 0
	}
	return err
}

// append writes a line, with the time and the backend. The caller holds mu.
func (a *audit) append(l line) error {
	l.Time, l.Backend = time.Now(), a.backend
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if a.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := a.w.Write(append(text, '\n'))
	a.torn = err != nil && (a.torn || n > 0)
	return err
}

// handle returns how the log names a handle.
func (a *audit) handle(hash [sha256.Size]byte) string {
	if hash == ([sha256.Size]byte{}) {
		return ""
	}
	mac := hmac.New(sha256.New, a.key[:])
	mac.Write(hash[:])
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
