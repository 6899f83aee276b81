package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(NotYet), func(context.Context) error {
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

func TestCausesWarnsOfEachCauseAndAgainAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var causes Causes
		for i, step := range []struct {
			pause time.Duration
			text  string
			want  hclog.Level
		}{
			{0, "a", hclog.Warn}, {time.Second, "a", hclog.Debug}, {time.Second, "b", hclog.Warn},
			{time.Second, "b", hclog.Debug}, {time.Second, "a", hclog.Debug}, {remind, "b", hclog.Warn},
		} {
			<-time.After(step.pause)
			if level := causes.Level(errors.New(step.text)); level != step.want {
				t.Errorf("step %d: %s, want %s", i, level, step.want)
			}
		}
	})
}

// Permanent errors are not retried without end.
func TestPermanentErrorStopsAtOnce(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Permanent, Gone} {
		attempts := 0
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(class), func(context.Context) error {
			attempts++
			return errFault
		})
		if attempts != 1 {
			t.Errorf("class %d: %d attempts, want 1", class, attempts)
		}
		if !errors.As(err, new(*PermanentError)) || !errors.Is(err, errFault) {
			t.Errorf("class %d: got %v, want a *PermanentError of %v", class, err, errFault)
		}
	}
}

func TestDoGivesUpAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		fails := func(context.Context) error { return errFault }
		err := Do(t.Context(), Remote(), hclog.NewNullLogger(), "ask", always(NotYet), fails)
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
		err := Do(t.Context(), LocalAgent(), hclog.NewNullLogger(), "ask", always(NotYet),
			func(ctx context.Context) error {
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
		fails := func(context.Context) error { return errFault }
		err := Do(ctx, Remote(), hclog.NewNullLogger(), "ask", always(NotYet), fails)
		if !errors.Is(err, cause) || !errors.Is(err, errFault) {
			t.Errorf("got %v, want both the cause and the last error", err)
		}
		if strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "stopped by signal; the last error: ") {
			t.Errorf("got %q, want one line", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %s, want 1s", took)
		}
	})
}

func TestPauseGrowsWithTheTimeWaited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy   Policy
		waited   time.Duration
		min, max time.Duration
	}{
		{LocalAgent(), 0, 25 * time.Millisecond, 250 * time.Millisecond},
		{LocalAgent(), time.Hour, 25 * time.Millisecond, 250 * time.Millisecond},
		{Remote(), 0, 25 * time.Millisecond, 250 * time.Millisecond},
		{Remote(), 2 * time.Second, 25 * time.Millisecond, 250 * time.Millisecond},
		{Remote(), 6 * time.Second, 75 * time.Millisecond, 750 * time.Millisecond},
		{Remote(), time.Minute, 750 * time.Millisecond, 7500 * time.Millisecond},
		{Remote(), time.Hour, 6 * time.Second, time.Minute},
	} {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			p := c.policy.Pause(c.waited)
			low, high = min(low, p), max(high, p)
		}
		if low < c.min || high > c.max {
			t.Errorf("after %s: pauses from %s to %s, want within %s to %s", c.waited, low, high, c.min, c.max)
		}
		if spread := high - low; spread < (c.max-c.min)*8/10 {
			t.Errorf("after %s: pauses spread over %s only: no jitter", c.waited, spread)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	low, high := time.Hour, time.Duration(0)
	for range 2000 {
		d := Around(10 * time.Second)
		low, high = min(low, d), max(high, d)
	}
	if low < 8*time.Second || low > 8500*time.Millisecond {
		t.Errorf("at least %s, want 8 s", low)
	}
	if high > 12*time.Second || high < 11500*time.Millisecond {
		t.Errorf("at most %s, want 12 s", high)
	}
}

// The pause after an error is at least the one it asks for, and is logged.
func TestDoObeysADelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var buf strings.Builder
		log := hclog.New(&hclog.LoggerOptions{Output: &buf})
		attempts, start := 0, time.Now()
		err := Do(t.Context(), LocalAgent(), log, "ask", always(NotYet), func(context.Context) error {
			if attempts++; attempts > 1 {
				return nil
			}
			return fmt.Errorf("ask: %w", &DelayError{errFault, 30 * time.Second})
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the second attempt came after %s, want 30s", took)
		}
		if !strings.Contains(buf.String(), "retry_in=30s") {
			t.Errorf("the pause is not logged:\n%s", buf.String())
		}
	})
}

func TestGaveUpErrorCounts(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{
		1: "gave up after 1 attempt in 2s: fault", 2: "gave up after 2 attempts in 2s: fault",
	} {
		err := &GaveUpError{Attempts: attempts, Elapsed: 2 * time.Second, Err: errors.New("fault")}
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The pauses of an operation count from its first failure, so that a long outage costs
// few attempts.
func TestDoAttemptsInALongOutage(t *testing.T) {
	t.Parallel()
	for limit, most := range map[time.Duration]int{2 * time.Second: 35, time.Minute: 100, time.Hour: 250} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			fails := func(context.Context) error {
				attempts++
				return errFault
			}
			err := Do(t.Context(), Remote().Within(limit), hclog.NewNullLogger(), "ask", always(NotYet), fails)
			if !errors.Is(err, errFault) {
				t.Error(err)
			}
			if attempts > most {
				t.Errorf("%d attempts in %s, want at most %d", attempts, limit, most)
			}
		})
	}
}

// logged runs an operation that fails with the errors in turn, and returns the
// levels of its log lines.
func logged(t *testing.T, failures []error) (levels []string, text string) {
	t.Helper()
	var buf strings.Builder
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &buf})
	attempts := 0
	err := Do(t.Context(), LocalAgent(), log, "ask", always(NotYet), func(context.Context) error {
		if attempts++; attempts > len(failures) {
			return nil
		}
		return failures[attempts-1]
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(buf.String()) {
		_, rest, _ := strings.Cut(line, "[")
		level, _, _ := strings.Cut(rest, "]")
		levels = append(levels, level)
	}
	return levels, buf.String()
}

func TestDoWarnsOncePerCause(t *testing.T) {
	t.Parallel()
	other := errors.New("other fault")
	port := func(p string) error { return errors.New("read tcp 127.0.0.1:" + p + "->127.0.0.1:8500: reset") }
	for name, c := range map[string]struct {
		failures []error
		want     string
	}{
		"no failure":         {nil, ""},
		"one":                {[]error{errFault}, "WARN INFO"},
		"repeats":            {[]error{errFault, errFault, errFault}, "WARN DEBUG DEBUG INFO"},
		"another text":       {[]error{errFault, errFault, other, errFault}, "WARN DEBUG WARN DEBUG INFO"},
		"another local port": {[]error{port("40001"), port("40002")}, "WARN DEBUG INFO"},
		"another status":     {[]error{errors.New("status 500"), errors.New("status 503")}, "WARN WARN INFO"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				levels, text := logged(t, c.failures)
				if got := strings.Join(levels, " "); got != c.want {
					t.Errorf("levels %q, want %q:\n%s", got, c.want, text)
				}
			})
		})
	}
}

// TestDoDoesNotWarnOfExpectedFailures checks that a failure that lasts longer is warned of all the same.
func TestDoDoesNotWarnOfExpectedFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		policy := Policy{Base: 100 * time.Millisecond, Max: 100 * time.Millisecond, Expected: 5 * time.Second}
		until := func(end time.Duration) {
			log.Reset()
			start := time.Now()
			logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})
			err := Do(t.Context(), policy, logger, "ask", Always, func(context.Context) error {
				if time.Since(start) >= end {
					return nil
				}
				return errors.New("refused")
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		until(4 * time.Second)
		if got := strings.Count(log.String(), "[WARN]"); got != 0 || strings.Count(log.String(), "ask failed") != 1 {
			t.Errorf("got %d warnings, want none and one line about the failure:\n%s", got, log.String())
		}
		until(6 * time.Second)
		if got := strings.Count(log.String(), "[WARN]"); got != 1 {
			t.Errorf("got %d warnings, want 1:\n%s", got, log.String())
		}
	})
}

func TestDoWarnsEveryTenSecondsOfTheSameFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failures := make([]error, 300) // about 41 s of LocalAgent
		for i := range failures {
			failures[i] = errFault
		}
		levels, text := logged(t, failures)
		warnings := 0
		for _, l := range levels {
			if l == "WARN" {
				warnings++
			}
		}
		if warnings < 4 || warnings > 6 {
			t.Errorf("%d warnings, want one and one every 10 s:\n%s", warnings, text)
		}
		if !strings.Contains(text, "elapsed=10") {
			t.Errorf("no warning after 10 s:\n%s", text)
		}
	})
}
