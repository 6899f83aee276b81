package retry

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Keys of log lines, as in package logkey: a package that many import imports none.
const (
	keyAttempt = "attempt"
	keyElapsed = "elapsed"
	keyRetryIn = "retry_in"
	keyError   = "error"
)

// remind is how often a failure that lasts is logged as a warning.
const remind = 10 * time.Second

// report is the log of one operation with its retries: WARN for each cause of
// failure, and every 10 s while it lasts, INFO as long as failures are expected; DEBUG for
// the other failures; INFO for a success after a failure.
type report struct {
	log   hclog.Logger
	what  string
	start time.Time
	// expected is that of the policy.
	expected time.Duration
	early    Causes
	causes   Causes
}

// Causes picks the levels of log lines about failures that repeat. The zero value is
// ready, and safe for concurrent use.
type Causes struct {
	mu     sync.Mutex
	warned map[string]time.Time // by cause
}

// Level returns hclog.Warn for each cause of failure, and again every 10 s while it lasts; hclog.Debug for the other
// failures.
func (c *Causes) Level(err error) hclog.Level {
	now, text := time.Now(), cause(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.warned, func(_ string, at time.Time) bool { return now.Sub(at) >= remind })
	if _, warned := c.warned[text]; warned {
		return hclog.Debug
	}
	if c.warned == nil {
		c.warned = map[string]time.Time{}
	}
	c.warned[text] = now
	return hclog.Warn
}

func (r *report) failed(attempt int, pause time.Duration, err error) {
	level := hclog.Debug
	if time.Since(r.start) >= r.expected {
		level = r.causes.Level(err)
	} else if r.early.Level(err) == hclog.Warn {
		level = hclog.Info
	}
	r.log.Log(level, r.what+" failed, retrying", keyAttempt, attempt, keyElapsed,
		time.Since(r.start).Round(time.Millisecond),
		keyRetryIn, pause.Round(time.Millisecond), keyError, err)
}

func (r *report) succeeded(attempt int) {
	if attempt > 1 {
		r.log.Info(r.what+" succeeded after retries", keyAttempt, attempt, keyElapsed,
			time.Since(r.start).Round(time.Millisecond))
	}
}

// cause returns the text of an error without the words that differ between attempts
// that fail in the same way: addresses with the local port, request IDs.
func cause(err error) string {
	words := strings.Fields(err.Error())
	constant := words[:0]
	for _, w := range words {
		if len(w) <= 4 || !strings.ContainsAny(w, "0123456789") {
			constant = append(constant, w)
		}
	}
	return strings.Join(constant, " ")
}
