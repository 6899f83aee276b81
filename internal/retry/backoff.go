package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff is the pauses of work that continues as long as the process does: they double
// from Base to Max, so that what fails costs little more than what is idle. It is not safe
// for concurrent use.
type Backoff struct {
	Base, Max time.Duration
	ceiling   time.Duration
}

// Next returns the pause after another failure: between half of its ceiling and all of it,
// so that a fleet does not ask in step.
func (b *Backoff) Next() time.Duration {
	b.ceiling = max(b.Base, min(2*b.ceiling, b.Max))
	return b.ceiling/2 + rand.N(b.ceiling/2+1)
}

// Reset starts over when the failures have ended.
func (b *Backoff) Reset() { b.ceiling = 0 }
