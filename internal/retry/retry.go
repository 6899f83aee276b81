// Package retry runs an operation until it succeeds, is refused for good, or
// runs out of time. Every wait of the in-task commands goes through it, so
// that back-off, jitter, limits and the one log line per attempt are the same
// everywhere (design decision 5).
//
// Flow: 1. call fn; 2. classify its error; 3. stop on Permanent, or log
// attempt and retry_in and sleep; 4. give up when the policy's limit or the
// context ends, with the last error inside a *GaveUpError.
//
// Never does: decide what an error means. Callers pass a classifier.
// Start reading at: Do.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// Class says what to do about an error.
type Class int

const (
	// Retry is for faults that may pass: transport, 429, 5xx, not replicated.
	Retry Class = iota
	// Permanent is for refusals: asking again cannot help.
	Permanent
	// Gone means the object does not exist; success for a delete.
	Gone
)

// Policy is a back-off.
type Policy struct {
	// Base is the first pause and Max the longest.
	Base, Max time.Duration
	// Constant keeps every pause at Base +-20 % instead of doubling with full
	// jitter.
	Constant bool
	// Limit bounds the whole operation; zero leaves that to the context.
	Limit time.Duration
}

// StartLimit is how long a command tries at start before it gives up.
const StartLimit = 3 * time.Minute

// LocalAgent is the policy towards the agent in the same task: cheap to ask,
// and every 250 ms of waiting is start-up time.
func LocalAgent() Policy {
	return Policy{Base: 250 * time.Millisecond, Constant: true, Limit: StartLimit}
}

// Remote is the policy towards Consul servers and AWS: exponential with full
// jitter, so that a fleet that starts together does not ask in step.
func Remote() Policy {
	return Policy{Base: 250 * time.Millisecond, Max: 5 * time.Second, Limit: StartLimit}
}

// Pause returns the wait after the given attempt, counted from 1. It uses the
// package-level random source and is safe for concurrent use.
func (p Policy) Pause(attempt int) time.Duration {
	if p.Constant {
		return p.Base*8/10 + rand.N(p.Base*4/10+1)
	}
	ceiling := p.Base
	for range attempt - 1 {
		if ceiling *= 2; ceiling >= p.Max {
			ceiling = p.Max
			break
		}
	}
	// Full jitter with a floor: a pause near zero would be a busy loop.
	return ceiling/10 + rand.N(ceiling*9/10+1)
}

// PermanentError marks an error that no retry can mend.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// GaveUpError is returned when time ran out; Err is the last attempt's.
type GaveUpError struct {
	Attempts int
	Elapsed  time.Duration
	Err      error
}

func (e *GaveUpError) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	return fmt.Sprintf("gave up after %d %s in %s: %v", e.Attempts, attempts, e.Elapsed.Round(time.Millisecond), e.Err)
}
func (e *GaveUpError) Unwrap() error { return e.Err }

// Do calls fn until it returns nil. classify must not be nil. A Permanent or
// Gone error is returned inside a *PermanentError; the end of ctx or of the
// policy's limit gives a *GaveUpError around the last error. log gets one line
// per failed attempt, named by what ("register service").
func Do(ctx context.Context, p Policy, log hclog.Logger, what string, classify func(error) Class, fn func(context.Context) error) error {
	start := time.Now()
	if p.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Limit)
		defer cancel()
	}
	var last error
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		// An attempt cut short by our own deadline says nothing new.
		if last == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			last = err
		}
		if classify(err) != Retry {
			return &PermanentError{Err: err}
		}
		if ctx.Err() != nil {
			return gaveUp(ctx, attempt, start, last)
		}
		pause := p.Pause(attempt)
		log.Warn(what+" failed, trying again", logkey.Attempt, attempt, logkey.RetryIn, pause.Round(time.Millisecond), logkey.Error, err)
		if Sleep(ctx, pause) != nil {
			return gaveUp(ctx, attempt, start, last)
		}
	}
}

// Sleep waits, and returns the context's error when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func gaveUp(ctx context.Context, attempts int, start time.Time, last error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) && !errors.Is(last, cause) {
		// Not errors.Join, which would spread the log line over three.
		last = fmt.Errorf("%w; the last error: %w", cause, last)
	}
	return &GaveUpError{Attempts: attempts, Elapsed: time.Since(start), Err: last}
}
