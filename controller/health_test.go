package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// get asks the handler without a socket.
func get(c *Controller, path string) (int, string) {
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// unhealthyAfter runs the fixture and returns when /healthz turned 503, 0 for never.
func (w *scripted) unhealthyAfter(d time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	var at time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for retry.Sleep(ctx, time.Second) == nil && at == 0 {
			if code, _ := get(w.Controller, "/healthz"); code == http.StatusServiceUnavailable {
				at = time.Since(w.start)
			}
		}
	}()
	w.Run(ctx)
	<-ended
	return at
}

// TestHealth: a controller that works or waits for another is healthy; one without
// success for three intervals is not.
func TestHealth(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change   func(*scripted)
		min, max time.Duration // 0: healthy
	}{
		"works": {func(*scripted) {}, 0, 0},
		"slow passes": {func(w *scripted) {
			w.pass = func(ctx context.Context, _ int) (Report, error) {
				retry.Sleep(ctx, 100*time.Second)
				return Report{AWS: awsutil.CallCounts{Calls: 500}}, nil
			}
		}, 0, 0},
		"fails from the start": {func(w *scripted) {
			w.pass = func(context.Context, int) (Report, error) { return Report{}, errFault }
		}, firstPass, firstPass + 2*time.Second},
		"fails later": {func(w *scripted) {
			w.pass = func(_ context.Context, n int) (Report, error) {
				if n > 1 {
					return Report{}, errFault
				}
				return Report{}, nil
			}
		}, 45 * time.Second, 48 * time.Second}, // three pauses of 15 s after the first
		"hangs": {func(w *scripted) {
			w.pass = func(ctx context.Context, n int) (Report, error) {
				if n > 1 {
					<-ctx.Done()
				}
				return Report{}, ctx.Err()
			}
		}, 45 * time.Second, 48 * time.Second},
		"one item fails": {func(w *scripted) {
			w.pass = func(context.Context, int) (Report, error) {
				return Report{Failed: make([]Failed, 1)}, nil
			}
		}, 0, 0},
		"waits": {func(w *scripted) {
			w.lead = func(ctx context.Context, standby func(string) error, _ func(context.Context) error) error {
				for tick := time.NewTicker(5 * time.Second); ; {
					standby("other")
					select {
					case <-tick.C:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
		}, 0, 0},
		"waits, and would pass often": {func(w *scripted) {
			w.Interval = time.Second
			w.lead = func(ctx context.Context, standby func(string) error, _ func(context.Context) error) error {
				for ; ; standby("other") {
					if err := retry.Sleep(ctx, 6*time.Second); err != nil {
						return err
					}
				}
			}
		}, 0, 0},
		"cut off, and would pass seldom": {func(w *scripted) {
			w.Interval = 10 * time.Minute
			w.lead = func(context.Context, func(string) error, func(context.Context) error) error { return errFault }
		}, 30 * time.Second, 32 * time.Second},
		"cut off": {func(w *scripted) {
			w.lead = func(context.Context, func(string) error, func(context.Context) error) error { return errFault }
		}, 30 * time.Second, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newScripted(t)
				tt.change(w)
				if at := w.unhealthyAfter(time.Hour); at < tt.min || at > tt.max {
					t.Errorf("unhealthy at %s, want from %s to %s", at, tt.min, tt.max)
				}
			})
		})
	}
}

// TestStandbyIsLoggedOnce: not every five seconds.
func TestStandbyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newScripted(t)
		w.lead = func(ctx context.Context, standby func(string) error, _ func(context.Context) error) error {
			for range 5 {
				standby("task a")
			}
			standby("task b")
			<-ctx.Done()
			return ctx.Err()
		}
		w.runFor(time.Minute)
		if w.logged(`another controller leads: leader="task a"`) != 1 || w.logged(`leader="task b"`) != 1 {
			t.Error(w.log.String())
		}
	})
}

// value reads one metric as Prometheus does.
func value(t *testing.T, c *Controller, name string, labels ...string) float64 {
	t.Helper()
	code, text := get(c, "/metrics")
	p := expfmt.NewTextParser(prometheus.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil || code != http.StatusOK {
		t.Fatalf("%d, %v", code, err)
	}
	f := families[metricPrefix+name]
	if f == nil {
		t.Fatalf("no metric %s in\n%s", name, text)
	}
	for _, m := range f.Metric {
		if !hasLabels(m, labels) {
			continue
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			return m.GetCounter().GetValue()
		case dto.MetricType_GAUGE:
			return m.GetGauge().GetValue()
		default:
			return m.GetHistogram().GetSampleSum()
		}
	}
	return -1
}

func hasLabels(m *dto.Metric, values []string) bool {
	for i, v := range values {
		if m.Label[i].GetValue() != v {
			return false
		}
	}
	return true
}

// metric is one value that is wanted.
type metric struct {
	name   string
	want   float64
	labels []string
}

func compare(t *testing.T, c *Controller, want []metric) {
	t.Helper()
	for _, m := range want {
		if got := value(t, c, m.name, m.labels...); got != m.want {
			t.Errorf("%s%v = %v, want %v", m.name, m.labels, got, m.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leading := []metric{
			{"build_info", 1, []string{"v1"}},
			{"leader", 1, nil},
			{"passes_total", 1, []string{"ok"}},
			{"passes_total", 1, []string{"error"}},
			{"pass_duration_seconds", 4, nil},
			{"tasks", 7, nil}, // what the failed pass saw may be a part
			{"tokens", 20, nil},
			{"services", 14, nil},
			{"foreign", 2, nil},
			{"unclaimed_tokens", 3, nil},
			{"kept_tasks", 1, []string{"missing_young"}},
			{"deletions_total", 4, []string{"token", "stopped"}},
			{"deletions_total", 2, []string{"service", "missing"}},
			{"deletion_failures_total", 1, nil},
			{"aws_calls_total", 4, nil},
			{"aws_throttles_total", 1, nil},
			{"setup_changes_total", 2, nil},
			{"setup_errors_total", 1, nil},
			{"setup_failing", 0, nil},
			{"interval_seconds", 15, nil},
		}
		w := newScripted(t)
		w.setup = func(n int) error {
			if n == 1 {
				return errFault
			}
			return nil
		}
		w.pass = func(ctx context.Context, n int) (Report, error) {
			retry.Sleep(ctx, 2*time.Second)
			switch n {
			case 1:
				return Report{
					Running: 7, Tokens: 20, Services: 14, Foreign: 2, Unclaimed: 3, Failed: make([]Failed, 1),
					AWS:     awsutil.CallCounts{Calls: 3, Throttles: 1},
					Plan:    Plan{Kept: []RetainedTask{{Reason: KeepMissingYoung}}},
					Deleted: append(deleted("token", "stopped", 4), deleted("service", "missing", 2)...),
				}, nil
			case 2:
				return Report{Running: 1, AWS: awsutil.CallCounts{Calls: 1}}, errFault
			}
			compare(t, w.Controller, leading)
			<-ctx.Done() // leadership ends during deletions
			return Report{Failed: make([]Failed, 1), AWS: awsutil.CallCounts{Calls: 1},
				Deleted: deleted("token", "stopped", 1)}, ctx.Err()
		}
		w.runFor(5 * time.Minute)
		if len(w.passes) != 3 {
			t.Fatalf("%d passes", len(w.passes))
		}
		compare(t, w.Controller, []metric{
			{"leader", 0, nil}, // and no gauge that the next leader sets
			{"tasks", 0, nil},
			{"tokens", 0, nil},
			{"services", 0, nil},
			{"foreign", 0, nil},
			{"unclaimed_tokens", 0, nil},
			{"kept_tasks", 0, []string{"missing_young"}},
			{"interval_seconds", 0, nil},
			{"deletions_total", 5, []string{"token", "stopped"}}, // those of the pass that was cut, too
			{"deletion_failures_total", 1, nil},
			{"aws_calls_total", 5, nil},
			{"passes_total", 1, []string{"error"}},
		})
		if got, begin := value(t, w.Controller, "last_success_timestamp_seconds"),
			float64(w.start.Unix()); got < begin+2 || got > begin+4 {
			t.Errorf("last success %v, started at %v", got, begin)
		}
	})
}

// TestReasonHasOneName: the label of both metrics, and the key in JSON.
func TestReasonHasOneName(t *testing.T) {
	t.Parallel()
	r := Report{
		Plan:    Plan{Kept: []RetainedTask{{Reason: KeepMissingYoung}}},
		Deleted: deleted("token", "stopped", 1),
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Metrics: NewMetrics("v1")})
	c.Metrics.count(r)
	c.Metrics.pass(r, nil, 0, 0, time.Now())
	_, metrics := get(c, "/metrics")
	for _, want := range []string{`kept_tasks{reason="missing_young"} 1`,
		`deletions_total{kind="token",reason="stopped"} 1`, `"reason":"missing_young"`, `"reason":"stopped"`} {
		if !strings.Contains(metrics+string(text), want) {
			t.Errorf("no %s in\n%s%s", want, metrics, text)
		}
	}
}

// TestConsulRequestsAreCounted: what Consul refuses or does not answer is an
// error; what is not there, or not wanted any more, is none.
func TestConsulRequestsAreCounted(t *testing.T) {
	t.Parallel()
	c := New(Options{Metrics: NewMetrics("v1")})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx    context.Context
		method string
		status int
		err    error
	}{
		{t.Context(), "GET", 200, nil},
		{t.Context(), "GET", 404, nil},
		{t.Context(), "GET", 403, nil},
		{t.Context(), "PUT", 500, nil},
		{t.Context(), "DELETE", 0, errors.New("refused")},
		{cancelled, "DELETE", 0, context.Canceled},
	} {
		r := httptest.NewRequest(tt.method, "http://consul/v1/x", new(bytes.Buffer)).WithContext(tt.ctx)
		c.Metrics.Transport(testkit.RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: tt.status}, tt.err
		})).RoundTrip(r)
	}
	for name, want := range map[string]float64{"read": 3, "write": 3} {
		if got := value(t, c, "consul_requests_total", name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := value(t, c, "consul_errors_total"); got != 3 {
		t.Errorf("%v errors", got)
	}
}
