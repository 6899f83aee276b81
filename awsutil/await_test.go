package awsutil

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
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
			task.Containers = append(task.Containers, workload.Container{Name: name, DesiredStatus: workload.StatusStopped, KnownStatus: status})
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
		"stopped before":     {answers{0: {"other"}}, 0, nil, nil, nil},
		"one after another":  {answers{0: {"web", "worker"}, 2 * sec: {"worker"}, 3 * sec: {}}, 3 * sec, nil, nil, []string{`["web", "worker"]`, `["worker"]`}},
		"unreadable at last": {answers{0: {"web"}, sec: nil}, 10 * sec, []string{"web"}, ended, []string{`["web"]`, "cannot be read"}},
		"readable at last":   {answers{0: nil, 2 * sec: {"web"}, 3 * sec: nil, 4 * sec: {}}, 4 * sec, nil, nil, []string{"cannot be read", "read again", `["web"]`, "cannot be read", "read again"}},
		"for ever":           {answers{0: {"web"}}, 10 * sec, []string{"web"}, ended, []string{`["web"]`}},
		"never readable":     {answers{0: nil}, 10 * sec, nil, ended, []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*sec, ended)
				defer cancel()
				start := time.Now()
				running, err := AwaitStopped(ctx, hclog.New(&hclog.LoggerOptions{Output: &log}), c.answers.read(), AwaitPause, others)
				if took := time.Since(start); took != c.took || !slices.Equal(running, c.running) || !errors.Is(err, c.err) {
					t.Errorf("%q, %v after %s", running, err, took)
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
