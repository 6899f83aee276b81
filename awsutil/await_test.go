package awsutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// answers is a metadata endpoint: what it says from that time on. nil is a
// failure, otherwise the containers that run.
type answers map[time.Duration][]string

// read returns a reader of the answers, from now on.
func (a answers) read() func(context.Context) (workload.Task, error) {
	start := time.Now()
	return func(context.Context) (workload.Task, error) {
		var at time.Duration
		for since := range a {
			if since <= time.Since(start) && since >= at {
				at = since
			}
		}
		if a[at] == nil {
			return workload.Task{}, errors.New("500")
		}
		var task workload.Task
		for _, name := range []string{"web", "worker", "other"} {
			status := workload.StatusStopped
			if slices.Contains(a[at], name) {
				status = "RUNNING"
			}
			task.Containers = append(task.Containers,
				workload.Container{Name: name, DesiredStatus: workload.StatusStopped, KnownStatus: status})
		}
		return task, nil
	}
}

func TestAwaitStopped(t *testing.T) {
	t.Parallel()
	const sec = time.Second
	others := func(task workload.Task) []workload.Container { return task.Containers[:2] }
	ended := errors.New("time is up")
	for name, c := range map[string]struct {
		answers answers
		took    time.Duration
		running []string
		err     error
		logged  []string // in this order, and nothing else
	}{
		"stopped before": {answers{0: {"other"}}, 0, nil, nil, nil},
		"one after another": {
			answers{0: {"web", "worker"}, 2 * sec: {"worker"}, 3 * sec: {}}, 3 * sec, nil, nil,
			[]string{`["web", "worker"]`, `["worker"]`},
		},
		"unreadable at last": {
			answers{0: {"web"}, sec: nil}, 10 * sec, []string{"web"}, ended, []string{`["web"]`, "cannot be read"},
		},
		"readable at last": {
			answers{0: nil, 2 * sec: {"web"}, 3 * sec: nil, 4 * sec: {}}, 4 * sec, nil, nil,
			[]string{"cannot be read", "read again", `["web"]`, "cannot be read", "read again"},
		},
		"for ever":       {answers{0: {"web"}}, 10 * sec, []string{"web"}, ended, []string{`["web"]`}},
		"never readable": {answers{0: nil}, 10 * sec, nil, ended, []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*sec, ended)
				defer cancel()
				start := time.Now()
				running, err := AwaitStopped(ctx, hclog.New(&hclog.LoggerOptions{Output: &log}), c.answers.read(),
					AwaitPause, others)
				if took := time.Since(start); took != c.took || !errors.Is(err, c.err) {
					t.Errorf("got %v after %s, want %v after %s", err, took, c.err, c.took)
				}
				if !slices.Equal(running, c.running) {
					t.Errorf("running: got %q, want %q", running, c.running)
				}
				lines := slices.Collect(strings.Lines(log.String()))
				if len(lines) != len(c.logged) {
					t.Fatalf("log:\n%s", &log)
				}
				for i, want := range c.logged {
					if !strings.Contains(lines[i], want) {
						t.Errorf("line %q lacks %q", lines[i], want)
					}
				}
			})
		})
	}
}

func TestFirstTask(t *testing.T) {
	t.Parallel()
	const sec = time.Second
	ended := errors.New("stopped by signal")
	for name, c := range map[string]struct {
		answers answers
		limit   time.Duration
		took    time.Duration
		want    string // of the error
	}{
		"at once":      {answers{0: {"web"}}, sec, 0, ""},
		"late":         {answers{0: nil, 9 * sec: {"web"}}, 0, 9 * sec, ""},
		"limit":        {answers{0: nil}, 2 * sec, 2 * sec, "check the ECS agent"},
		"end of ctx":   {answers{0: nil}, time.Minute, 10 * sec, ended.Error()},
		"no own limit": {answers{0: nil}, 0, 10 * sec, ended.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*sec, func() { cancel(ended) })
				start := time.Now()
				task, err := FirstTask(ctx, hclog.New(&hclog.LoggerOptions{Output: &log}), c.answers.read(), c.limit)
				if took := time.Since(start); took < c.took || took > c.took+firstPauseMax {
					t.Errorf("took %s, want %s", took, c.took)
				}
				_, gaveUp := errors.AsType[*retry.GaveUpError](err)
				if (len(task.Containers) == 3) != (c.want == "") || gaveUp != (c.want != "") {
					t.Errorf("%+v, %v", task, err)
				}
				testkit.ErrorContains(t, err, c.want)
				if advised := strings.Contains(fmt.Sprint(err), "ECS agent"); err != nil &&
					advised == errors.Is(err, ended) {
					t.Errorf("error %v: advice %v", err, advised)
				}
				if c.took > 0 && !strings.Contains(log.String(), "[WARN]  read task metadata failed, retrying") {
					t.Errorf("log:\n%s", &log)
				}
				cancel(nil)
			})
		})
	}
}
