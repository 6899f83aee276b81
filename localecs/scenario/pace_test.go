package scenario

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, started := 0, time.Now()
		err := pollUntil(t.Context(), func() (bool, error) { asked++; return asked == 4, nil })
		if err != nil || time.Since(started) != 60*time.Millisecond {
			t.Errorf("%v after %s, want three ticks", err, time.Since(started))
		}
		broken := errors.New("broken")
		if err := pollUntil(t.Context(), func() (bool, error) { return false, broken }); err != broken {
			t.Errorf("got %v", err)
		}
		late := errors.New("late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if err := pollUntil(ctx, func() (bool, error) { return false, nil }); err != late {
			t.Errorf("got %v, want the context's cause", err)
		}
	})
}

func TestClockBeginsWithItsFirstStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		s := func(n int) *time.Duration { d := time.Duration(n) * time.Second; return &d }
		<-time.After(time.Minute)
		started := time.Now()
		for _, step := range []struct {
			at   *time.Duration
			want time.Duration
		}{{nil, 0}, {s(2), 2 * time.Second}, {nil, 2 * time.Second}, {s(5), 5 * time.Second}, {s(1), 5 * time.Second}} {
			if err := c.Await(t.Context(), step.at); err != nil || time.Since(started) != step.want {
				t.Errorf("%v: %v after %s, want %s", step.at, err, time.Since(started), step.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Await(ctx, s(99)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
