package entrypoint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestEnvoyIsStartedAgain: at once after a crash, and no more often than that when it
// cannot run.
func TestEnvoyIsStartedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		first := newChild("")
		first.exit <- 139
		var starts []time.Duration
		e := envoyOf(first, nil, hangs())
		e.Log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn, DisableTime: true})
		e.Start = func() (Child, error) {
			starts = append(starts, time.Since(first.start))
			child := newChild("")
			child.exit <- len(starts)
			return child, nil
		}
		if code := RunEnvoy(t.Context(), e); code != 3 {
			t.Errorf("exit code %d, want the last child's, 3", code)
		}
		const ms = time.Millisecond
		if want := []time.Duration{100 * ms, 600 * ms, 1600 * ms}; !slices.Equal(starts, want) {
			t.Errorf("started at %v, want %v", starts, want)
		}
		want := "" +
			"[WARN]  envoy exited unexpectedly, starting it again: exit_code=139 reason=SIGSEGV attempt=1 " +
			"retry_in=100ms\n" +
			"[WARN]  envoy exited unexpectedly, starting it again: exit_code=1 reason=error attempt=2 retry_in=500ms\n" +
			"[WARN]  envoy exited unexpectedly, starting it again: exit_code=2 reason=error attempt=3 retry_in=1s\n"
		if log.String() != want {
			t.Errorf("log\n%s\nwant\n%s", log.String(), want)
		}
	})
}

func TestSecondEnvoyIsSupervisedAsTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := newChild(""), newChild("group terminated")
		time.AfterFunc(time.Second, func() { first.exit <- 137 })
		drained := func(context.Context, int) error { return nil }
		e, asked := drainable(first, termAt(70*time.Second), stopsAt(60*time.Second, 70*time.Second), drained)
		e.Start = func() (Child, error) { return second, nil }
		if code := RunEnvoy(t.Context(), e); code != 55 {
			t.Errorf("exit code %d, want the second child's, 55", code)
		}
		first.check(t)
		second.check(t, "group terminated at 1m10s")
		if want := []time.Duration{time.Minute}; !slices.Equal(*asked, want) {
			t.Errorf("drained at %v, want %v", *asked, want)
		}
	})
}

func TestEnvoyThatCannotBeStartedAgainEndsWithTheCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("")
		child.exit <- 139
		e := envoyOf(child, nil, hangs())
		e.Start = func() (Child, error) { return nil, errors.New("no such file") }
		if code := RunEnvoy(t.Context(), e); code != 139 {
			t.Errorf("exit code %d, want 139", code)
		}
	})
}
