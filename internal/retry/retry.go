// Package retry runs an operation until it succeeds, is refused permanently, or
// runs out of time. Every wait of the in-task commands goes through it, so
// that pauses, jitter, limits and log lines are the same everywhere.
//
// Flow: 1. call fn; 2. classify its error; 3. stop on Permanent and Gone, or
// log and pause, the longer the more time has passed since the first failure;
// 4. give up when the policy's limit or the context ends, with the last error
// inside a *GaveUpError.
//
// Never does: decide what an error means. Callers pass a classifier.
// Start reading at: Class, Policy, then Do.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Class is what waiting can change about an error. It decides whether Do tries
// again.
type Class int

const (
	// NotYet is for everything that may change: a connection that was not made, 429,
	// 5xx, no leader, not replicated, an object that another process creates, a file that
	// another container writes.
	NotYet Class = iota
	// Permanent is for refusals: asking again cannot help.
	Permanent
	// Gone means the object does not exist; success for a delete.
	Gone
)

// Always classifies every error as NotYet.
func Always(error) Class { return NotYet }

// Retryable reports whether another attempt can succeed.
func (c Class) Retryable() bool { return c == NotYet }

// Policy is the pauses between attempts, and a limit.
type Policy struct {
	// Base is the longest pause at first, Max the longest at all.
	Base, Max time.Duration
	// Limit bounds the whole operation; zero leaves that to the context.
	Limit time.Duration
	// Expected is how long failures are no reason for a warning, since what is asked starts at the same time.
	Expected time.Duration
}

// StartLimit is how long a command tries at start before it gives up.
const StartLimit = 3 * time.Minute

// LocalAgent returns the policy towards the agent in the same task: it is cheap to ask,
// and every 250 ms of waiting is start-up time.
func LocalAgent() Policy {
	return Policy{Base: 250 * time.Millisecond, Max: 250 * time.Millisecond, Limit: StartLimit}
}

// Remote returns the policy towards Consul servers and AWS, which a whole fleet may wait
// for: quick in the first seconds, when a late server is start-up time, and slow in a
// long outage.
func Remote() Policy {
	return Policy{Base: 250 * time.Millisecond, Max: time.Minute, Limit: StartLimit}
}

// Within returns the policy with another limit.
func (p Policy) Within(limit time.Duration) Policy {
	p.Limit = limit
	return p
}

// growth is the part of the time waited that a pause may take: it bounds what a pause
// adds to an outage, and the attempts made in one.
const growth = 8

// Pause returns how long to wait for the next attempt, at random so that a fleet that
// waits for the same servers does not ask in step; waited is the time since the first
// failure. It is safe for concurrent use.
func (p Policy) Pause(waited time.Duration) time.Duration {
	ceiling := max(p.Base, min(waited/growth, p.Max))
	// The floor is there because a pause near zero would be a busy loop.
	return ceiling/10 + rand.N(ceiling*9/10+1)
}

// Around returns a random duration within 20 % of d, for periodic work that a fleet
// must not do in step.
func Around(d time.Duration) time.Duration { return d*8/10 + rand.N(d*4/10+1) }

// DelayError is an error after which Do pauses for at least Delay.
type DelayError struct {
	Err   error
	Delay time.Duration
}

func (e *DelayError) Error() string { return e.Err.Error() }
func (e *DelayError) Unwrap() error { return e.Err }

// PermanentError marks an error that a retry cannot change.
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

// Do calls fn until it returns nil. classify must not be nil. A Permanent or Gone
// error is returned inside a *PermanentError; the end of ctx or of the policy's
// limit gives a *GaveUpError around the last error. Failures are logged with the
// operation's name, what ("register service"); see report.
func Do(
	ctx context.Context, p Policy, log hclog.Logger, what string, classify func(error) Class,
	fn func(context.Context) error,
) error {
	if p.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Limit)
		defer cancel()
	}
	r := report{log: log, what: what, start: time.Now(), expected: p.Expected}
	var last error
	var failing time.Time // since then
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil {
			r.succeeded(attempt)
			return nil
		}
		// An attempt cut short by our own deadline has no new error.
		if last == nil || ctx.Err() == nil ||
			!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		if !classify(err).Retryable() {
			return &PermanentError{Err: err}
		}
		if ctx.Err() != nil {
			return gaveUp(ctx, attempt, r.start, last)
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		pause := p.Pause(time.Since(failing))
		if delayed, ok := errors.AsType[*DelayError](err); ok {
			pause = max(pause, delayed.Delay)
		}
		r.failed(attempt, pause, err)
		if Sleep(ctx, pause) != nil {
			return gaveUp(ctx, attempt, r.start, last)
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
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) &&
		!errors.Is(last, cause) {
		// Not errors.Join, which would spread the log line over three.
		last = fmt.Errorf("%w; the last error: %w", cause, last)
	}
	return &GaveUpError{Attempts: attempts, Elapsed: time.Since(start), Err: last}
}
