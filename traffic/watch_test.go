package traffic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// admin is an Envoy as Watch sees it. The counters' answer is that of the last time that has come.
type admin struct {
	start    time.Time
	counters map[time.Duration]string // "" for an empty answer, refused for none
	gauges   string
	reads    map[string]int // by type
}

const refused = "refused"

func (a *admin) ask(ctx context.Context, path string) ([]byte, error) {
	kind := "gauges"
	if strings.Contains(path, "type=Counters") {
		kind = "counters"
	}
	a.reads[kind]++
	if kind == "gauges" {
		return []byte(a.gauges), nil
	}
	var last time.Duration
	for at := range a.counters {
		if at <= time.Since(a.start) && at >= last {
			last = at
		}
	}
	if a.counters[last] == refused {
		return nil, errors.New("connection refused")
	}
	return []byte(a.counters[last]), nil
}

// TestWatch compares the warnings and the reads of two minutes.
func TestWatch(t *testing.T) {
	t.Parallel()
	const denials = "connect_authz.rbac.denied: 3\n"
	ghost := "cluster.ghost" + domain + "membership_healthy: 0\ncluster.ghost" + domain + "membership_total: 0\n"
	for name, tc := range map[string]struct {
		counters  map[time.Duration]string
		gauges    string
		upstreams []string
		want      []string
		reads     map[string]int
	}{
		"a healthy task": {map[time.Duration]string{0: ""}, "", nil, nil, map[string]int{"counters": 25}},
		"an upstream that is there": {map[time.Duration]string{0: ""},
			"cluster.api" + domain + "membership_healthy: 1\n",
			[]string{"api"}, nil, map[string]int{"counters": 25, "gauges": 9}},
		"an upstream that nobody calls": {map[time.Duration]string{0: ""}, ghost, []string{"ghost"},
			[]string{"[WARN]  an upstream has no healthy instance: upstream=ghost " +
				"count=0 since=2000-01-01T00:00:00Z instances=0"},
			map[string]int{"counters": 25, "gauges": 19}},
		"what happened before is no news": {map[time.Duration]string{0: denials}, "", nil, nil,
			map[string]int{"counters": 25}},
		"what happened while Envoy started is": {map[time.Duration]string{0: refused, 2 * time.Second: denials},
			"", nil,
			[]string{"[WARN]  callers are denied by the intentions of the service: service_name=web count=3 " +
				"since=2000-01-01T00:00:02Z reason=connections"},
			map[string]int{"counters": 26}},
		"no Envoy": {map[time.Duration]string{0: refused}, "", nil, nil,
			map[string]int{"counters": 121}},
		"another program's port": {map[time.Duration]string{0: "<html>"}, "", nil, nil,
			map[string]int{"counters": 121}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &admin{time.Now(), tc.counters, tc.gauges, map[string]int{}}
				var log testkit.Log
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Millisecond)
				defer cancel()
				Watch(ctx, Options{Service: "web", Upstreams: tc.upstreams}, Deps{Ask: a.ask,
					Log: hclog.New(&hclog.LoggerOptions{
						Output: &log, DisableTime: true, Level: hclog.Debug})})
				var warnings []string
				for line := range strings.Lines(log.String()) {
					if line, _, _ = strings.Cut(line, " fix="); strings.Contains(line, "WARN") {
						warnings = append(warnings, line)
					}
				}
				if diff := cmp.Diff(tc.want, warnings); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.reads, a.reads); diff != "" {
					t.Errorf("reads (-want +got):\n%s", diff)
				}
				if n := strings.Count(log.String(), "[DEBUG]"); n > 1 {
					t.Errorf("%d lines about an Envoy that does not answer, want one at most", n)
				}
			})
		})
	}
}

// TestWatchEndsAtOnce proves that an Envoy that does not answer delays nothing.
func TestWatchEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		Watch(ctx, Options{}, Deps{Log: hclog.NewNullLogger(), Ask: func(ctx context.Context, _ string) ([]byte,
			error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		testkit.Equal(t, "time until it ended", time.Since(start), time.Second)
	})
}
