package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// slowDeletes answers deletions late, each after it was done.
type slowDeletes struct {
	*fakeConsul
	late    time.Duration
	started func()
}

// RoundTrip implements http.RoundTripper.
func (s slowDeletes) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.fakeConsul.RoundTrip(r)
	if r.Method == http.MethodGet {
		return resp, err
	}
	s.started()
	select {
	case <-time.After(s.late):
		return resp, err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A kind of item that Apply does not know is a failure, and not the deletion of a service.
func TestApplyRefusesAnUnknownKind(t *testing.T) {
	t.Parallel()
	r := Report{Plan: Plan{Delete: []Item{{Kind: "policy", Task: task1, Node: "a", Service: "web-" + task1}}}}
	err := inMemory(t, populated(t, []string{task1}), &fakeECS{}).Apply(t.Context(), &r)
	if err == nil || !strings.Contains(err.Error(), `a plan cannot delete a "policy"`) {
		t.Errorf("got %v, want an error about the kind", err)
	}
}

// TestInterruptedApplyReportsItsChanges: of TERM in the middle of a pass nothing
// is gone whose evidence is not logged, and who does not answer does not hold it up.
func TestInterruptedApplyReportsItsChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		late          time.Duration
		took          time.Duration
		gone, unknown int
	}{
		"answers come":    {500 * time.Millisecond, 500 * time.Millisecond, 2, 0},
		"Consul is stuck": {time.Hour, time.Second, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, term := context.WithCancel(t.Context())
				var started atomic.Int32
				c := inMemory(t, slowDeletes{populated(t, []string{task1}), tc.late, func() {
					if started.Add(1) == 2 {
						term()
					}
				}}, &fakeECS{})
				var log strings.Builder
				c.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
				r := Report{Plan: Plan{Delete: []Item{
					{Kind: KindService, Task: task1, Node: "a", Service: "web-" + task1, Evidence: "proof"},
					{Kind: KindService, Task: task1, Node: "a", Service: "web-" + task1 + "-sidecar-proxy",
						Evidence: "proof"},
					{Kind: KindToken, Task: task1, Accessor: "never started", Evidence: "proof"},
				}}}
				start := time.Now()
				if err := c.Apply(ctx, &r); err == nil || time.Since(start) != tc.took {
					t.Errorf("%v after %s, want %s", err, time.Since(start), tc.took)
				}
				got := []int{strings.Count(log.String(), "evidence=proof"), len(r.Deleted), len(r.Failed)}
				if want := []int{tc.gone, tc.gone, tc.unknown}; !slices.Equal(got, want) {
					t.Errorf("logged, deleted and failed: got %v, want %v", got, want)
				}
			})
		})
	}
}
