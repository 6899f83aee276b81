package retry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

var errFault = errors.New("fault")

func always(c Class) func(error) Class { return func(error) Class { return c } }

func TestDoRetriesUntilSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(Retry), func(context.Context) error {
			if attempts++; attempts < 5 {
				return errFault
			}
			return nil
		})
		if err != nil || attempts != 5 {
			t.Fatalf("got %v after %d attempts, want success after 5", err, attempts)
		}
	})
}

// Weakness 9: endless retries of permanent errors.
func TestWeakness09PermanentErrorStopsAtOnce(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Permanent, Gone} {
		attempts := 0
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(class), func(context.Context) error {
			attempts++
			return errFault
		})
		var permanent *PermanentError
		if attempts != 1 || !errors.As(err, &permanent) || !errors.Is(err, errFault) {
			t.Errorf("class %d: got %v after %d attempts, want *PermanentError after 1", class, err, attempts)
		}
	}
}

func TestDoGivesUpAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := Do(t.Context(), Remote(), hclog.NewNullLogger(), "ask", always(Retry), func(context.Context) error { return errFault })
		var gaveUp *GaveUpError
		if !errors.As(err, &gaveUp) || !errors.Is(err, errFault) {
			t.Fatalf("got %v, want *GaveUpError around the last error", err)
		}
		if took := time.Since(start); took != StartLimit {
			t.Errorf("gave up after %s, want %s", took, StartLimit)
		}
	})
}

// A hanging attempt must not hide what went wrong before it.
func TestDoKeepsTheLastRealError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(Retry), func(ctx context.Context) error {
			if attempts++; attempts == 1 {
				return errFault
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errFault) {
			t.Errorf("got %v, want the first attempt's error", err)
		}
	})
}

func TestDoEndsWithTheContextAndItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stopped by signal")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		start := time.Now()
		err := Do(ctx, Remote(), hclog.NewNullLogger(), "ask", always(Retry), func(context.Context) error { return errFault })
		if !errors.Is(err, cause) || !errors.Is(err, errFault) {
			t.Errorf("got %v, want both the cause and the last error", err)
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "stopped by signal; the last error: ") {
			t.Errorf("got %q, want one line", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %s, want 1s", took)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy   Policy
		attempt  int
		min, max time.Duration
	}{
		{LocalAgent(), 1, 200 * time.Millisecond, 300 * time.Millisecond},
		{LocalAgent(), 50, 200 * time.Millisecond, 300 * time.Millisecond},
		{Remote(), 1, 25 * time.Millisecond, 250 * time.Millisecond},
		{Remote(), 3, 100 * time.Millisecond, time.Second},
		{Remote(), 5, 400 * time.Millisecond, 4 * time.Second},
		{Remote(), 1000, 500 * time.Millisecond, 5 * time.Second},
	} {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			p := c.policy.Pause(c.attempt)
			low, high = min(low, p), max(high, p)
		}
		if low < c.min || high > c.max {
			t.Errorf("attempt %d: pauses from %s to %s, want within %s to %s", c.attempt, low, high, c.min, c.max)
		}
		if spread := high - low; spread < (c.max-c.min)*8/10 {
			t.Errorf("attempt %d: pauses spread over %s only: no jitter", c.attempt, spread)
		}
	}
}

func TestGaveUpErrorCounts(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{1: "gave up after 1 attempt in 2s: fault", 2: "gave up after 2 attempts in 2s: fault"} {
		err := &GaveUpError{Attempts: attempts, Elapsed: 2 * time.Second, Err: errors.New("fault")}
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
