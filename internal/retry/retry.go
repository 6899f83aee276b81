// Package retry runs an operation until it succeeds, is refused permanently, or
// runs out of time. Every wait of the in-task commands goes through it, so
// that pauses, jitter, limits and log lines are the same everywhere.
//
// Flow: 1. call fn; 2. classify its error; 3. stop on Permanent and Gone, or
// log and pause for as long as the class asks for; 4. give up when the
// policy's limit or the context ends, with the last error inside a
// *GaveUpError.
//
// Never does: decide what an error means. Callers pass a classifier.
// Start reading at: Class, then Do.
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
// again, and how long it pauses before that.
type Class int

const (
	// Retry is for an answer that may change: 429, 5xx, not leader, not
	// replicated. The pause is the policy's, since the one who answered has
	// work to do.
	Retry Class = iota
	// Permanent is for refusals: asking again cannot help.
	Permanent
	// Gone means the object does not exist; success for a delete.
	Gone
	// Unreachable is for connections that were not made: refused, no route,
	// no such host. No server is loaded by an attempt, so pauses are short.
	Unreachable
	// NotYet is for an object that another process creates, such as an auth
	// method: it may appear any moment, but each attempt is a request.
	NotYet
	// NoFile is for a file that another container writes.
	NoFile
)

// Always classifies every error as Retry.
func Always(error) Class { return Retry }

// Retryable reports whether another attempt can succeed.
func (c Class) Retryable() bool { return c != Permanent && c != Gone }

// Pauses of the classes that do not take the policy's.
const (
	unreachableBase, unreachableMax = 100 * time.Millisecond, 400 * time.Millisecond
	notYetBase, notYetMax           = 250 * time.Millisecond, time.Second
	filePoll                        = 100 * time.Millisecond
	// unreachableSteps is the number of attempts after which Policy.Unreachable counts
	// once more.
	unreachableSteps = 64
)

// Policy is a limit, and the pauses between attempts that end with Retry.
type Policy struct {
	// Base is the first pause and Max the longest.
	Base, Max time.Duration
	// Constant keeps every pause at Base +-20 % instead of doubling with full
	// jitter.
	Constant bool
	// Unreachable shortens the pauses after connections that were not made to at most
	// this at first, for a peer in the same task; zero does not.
	Unreachable time.Duration
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

// Within is the policy with another limit.
func (p Policy) Within(limit time.Duration) Policy {
	p.Limit = limit
	return p
}

// Pause returns the wait after the given attempt, counted from 1. It uses the
// package-level random source and is safe for concurrent use.
func (p Policy) Pause(attempt int) time.Duration {
	if p.Constant {
		return p.Base*8/10 + rand.N(p.Base*4/10+1)
	}
	ceiling := doubled(p.Base, p.Max, attempt)
	// Full jitter with a floor: a pause near zero would be a busy loop.
	return ceiling/10 + rand.N(ceiling*9/10+1)
}

// pause returns the wait after the given number of attempts that ended with the
// class.
func (p Policy) pause(class Class, attempt int) time.Duration {
	switch class {
	case Unreachable:
		pause := doubled(unreachableBase, unreachableMax, attempt)
		if p.Unreachable > 0 {
			// It grows slowly: a peer that is late keeps the CPU to itself.
			pause = min(pause, p.Unreachable*time.Duration(1+attempt/unreachableSteps))
		}
		return upperHalf(pause)
	case NotYet:
		return upperHalf(doubled(notYetBase, notYetMax, attempt))
	case NoFile:
		return filePoll
	default:
		return p.Pause(attempt)
	}
}

// doubled is base, doubled for each attempt after the first, at most limit.
func doubled(base, limit time.Duration, attempt int) time.Duration {
	for range attempt - 1 {
		if base *= 2; base >= limit {
			return limit
		}
	}
	return base
}

// upperHalf is a random duration between half of d and d.
func upperHalf(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

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

// Do calls fn until it returns nil. classify must not be nil; the class of an
// error picks the pause. A Permanent or Gone error is returned inside a
// *PermanentError; the end of ctx or of the policy's limit gives a *GaveUpError
// around the last error. Failures are logged with the operation's name, what
// ("register service"); see report.
func Do(ctx context.Context, p Policy, log hclog.Logger, what string, classify func(error) Class, fn func(context.Context) error) error {
	if p.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Limit)
		defer cancel()
	}
	r := report{log: log, what: what, start: time.Now()}
	var last error
	ended := map[Class]int{} // attempts by their class
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil {
			r.succeeded(attempt)
			return nil
		}
		// An attempt cut short by our own deadline has no new error.
		if last == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		class := classify(err)
		if !class.Retryable() {
			return &PermanentError{Err: err}
		}
		if class == Unreachable || class == NoFile { // meanwhile no server had any work
			ended = map[Class]int{class: ended[class]}
		}
		ended[class]++
		if ctx.Err() != nil {
			return gaveUp(ctx, attempt, r.start, last)
		}
		pause := p.pause(class, ended[class])
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
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) && !errors.Is(last, cause) {
		// Not errors.Join, which would spread the log line over three.
		last = fmt.Errorf("%w; the last error: %w", cause, last)
	}
	return &GaveUpError{Attempts: attempts, Elapsed: time.Since(start), Err: last}
}
