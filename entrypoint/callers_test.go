package entrypoint

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/workload"
)

const ms = time.Millisecond

// fakeCalls returns Envoy's counter over time, counted from now.
func fakeCalls(at func(since time.Duration) (uint64, error)) func(context.Context) (uint64, error) {
	start := time.Now()
	return func(context.Context) (uint64, error) { return at(time.Since(start)) }
}

// every counts one call in each interval until the end.
func every(interval, end time.Duration) func(time.Duration) (uint64, error) {
	return func(since time.Duration) (uint64, error) { return 1000 + uint64(min(since, end)/interval), nil }
}

// proxied returns metadata of a task with a proxy in that state.
func proxied(known string) *fakeMetadata {
	return &fakeMetadata{answer: func(context.Context) (workload.Task, error) {
		return workload.Task{Containers: []workload.Container{
				{Name: "app", KnownStatus: "RUNNING"},
				{Name: "sidecar-proxy", DesiredStatus: known, KnownStatus: known}}},
			nil
	}}
}

func TestAutomaticDelayEndsWithTheCalls(t *testing.T) {
	t.Parallel()
	silent := func(time.Duration) (uint64, error) { return 0, errors.New("connection refused") }
	answersFrom := func(begin time.Duration) func(time.Duration) (uint64, error) {
		return func(since time.Duration) (uint64, error) {
			if since < begin {
				return silent(since)
			}
			return 7, nil
		}
	}
	for name, tt := range map[string]struct {
		calls    func(time.Duration) (uint64, error)
		metadata Metadata
		want     time.Duration // when the application gets TERM
	}{
		"no caller":                             {every(time.Hour, time.Hour), nil, 1200 * ms},
		"callers that go at once":               {every(20*ms, 300*ms), nil, 1200 * ms},
		"callers that go late":                  {every(20*ms, 1500*ms), nil, 2000 * ms},
		"callers that stay":                     {every(20*ms, time.Hour), nil, 5 * time.Second},
		"callers that call twice a second":      {every(450*ms, time.Hour), nil, 5 * time.Second},
		"callers that go just before the limit": {every(20*ms, 4450*ms), nil, 5 * time.Second},
		"an Envoy that starts anew": {func(since time.Duration) (uint64, error) {
			if since > 1150*ms {
				return 0, nil
			}
			return 900, nil
		}, nil, 1700 * ms},
		"no Envoy and no metadata":          {silent, nil, 0},
		"no Envoy in the task":              {silent, stopsAt(0, time.Hour), 0},
		"an Envoy that has ended":           {silent, proxied("STOPPED"), 0},
		"an Envoy that cannot be asked":     {silent, proxied("RUNNING"), 5 * time.Second},
		"neither Envoy nor metadata answer": {silent, hangs(), 5 * time.Second},
		"an Envoy that answers late":        {answersFrom(2 * time.Second), proxied("RUNNING"), 2500 * ms},
		"an Envoy that answers at the last": {answersFrom(4900 * ms), proxied("RUNNING"), 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				child := newChild("group terminated")
				a := App{Child: child, Signals: termAt(0), Delay: 5 * time.Second, Log: hclog.NewNullLogger(),
					Callers: &Callers{Calls: fakeCalls(tt.calls), MinDelay: 1200 * ms}}
				if tt.metadata != nil {
					a.Callers.Proxied = Proxied(tt.metadata)
				}
				if code := RunApp(t.Context(), a); code != 55 {
					t.Errorf("exit code %d", code)
				}
				child.check(t, "group terminated at "+tt.want.String())
			})
		})
	}
}

// The child may end during the wait: nothing of it must block the return.
func TestChildThatEndsDuringAnAutomaticDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := newChild("process interrupt")
		calls := func(ctx context.Context) (uint64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		a := App{Child: child, Signals: termAt(0), Delay: time.Hour, Log: hclog.NewNullLogger(),
			Callers: &Callers{Calls: calls, MinDelay: time.Second}}
		time.AfterFunc(time.Second, func() { child.exit <- 3 })
		if code := RunApp(t.Context(), a); code != 3 {
			t.Errorf("exit code %d", code)
		}
		child.check(t)
	})
}

func TestCallsReadsEnvoysCounters(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		status int
		want   uint64
		fails  bool
	}{
		"an HTTP service": {"http.public_listener.downstream_rq_total: 40\nlistener.10.0.0.1_20000.ssl.handshake: 2\n",
			200, 42, false},
		"a mesh gateway": {"tcp.mesh_gateway_local.default.downstream_cx_no_route: " +
			"2\ntcp.mesh_gateway_local.default.downstream_cx_total: " +
			"5\nhttp.mesh_gateway_local_peered.web.downstream_rq_total: 4\n", 200, 7, false},
		"a new listener": {"listener.10.0.0.1_20000.ssl.handshake: 0\n", 200, 0, false},
		"no listener":    {"", 200, 0, true},
		"an error":       {"listener.x.ssl.handshake: 1\n", 503, 0, true},
		"no counter":     {"listener.x.ssl.handshake: P0(nan,0)\n", 200, 0, true},
		"another server": {"<html>", 200, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				w.Write([]byte(tt.answer))
			}))
			defer server.Close()
			got, err := Calls(envoy.Proxy{Admin: server.Listener.Addr().String()})(t.Context())
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("%d, %v; want %d, error %t", got, err, tt.want, tt.fails)
			}
		})
	}
	if _, err := Calls(envoy.Proxy{Admin: "127.0.0.1:1"})(t.Context()); err == nil {
		t.Error("no error without an Envoy")
	}
}

// TestGatewayEndsAfterItsCallers: without applications, and with one that stops later,
// such as a log router.
func TestGatewayEndsAfterItsCallers(t *testing.T) {
	t.Parallel()
	silent := func(time.Duration) (uint64, error) { return 0, errors.New("connection refused") }
	for name, tt := range map[string]struct {
		calls   func(time.Duration) (uint64, error)
		stopped time.Duration // when the last application has stopped
		want    time.Duration // when Envoy gets TERM
	}{
		"no caller":                     {every(time.Hour, time.Hour), 0, 1200 * ms},
		"callers that go late":          {every(20*ms, 1500*ms), 0, 2000 * ms},
		"callers that stay":             {every(20*ms, time.Hour), 0, 5 * time.Second},
		"an Envoy that cannot be asked": {silent, 0, 5 * time.Second},
		"an application that stays":     {every(time.Hour, time.Hour), 1500 * ms, 1575 * ms},
		"an application that stays longer than the wait for callers": {every(time.Hour, time.Hour), 8 * time.Second,
			8075 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				child := newChild("group killed") // 10 s after TERM, whatever came before
				e := envoyOf(child, termAt(0), stopsAt(0, tt.stopped))
				e.Callers = &Callers{Calls: fakeCalls(tt.calls), Proxied: func(context.Context) bool { return true },
					MinDelay: 1200 * ms}
				e.MaxDelay = 5 * time.Second
				RunEnvoy(t.Context(), e)
				child.check(t, "group terminated at "+tt.want.String(),
					"group killed at "+(tt.want+10*time.Second).String())
			})
		})
	}
}

// Which of Envoy's counters are callers' depends on what the Envoy is.
func TestCallsSelectsTheCountersOfCallers(t *testing.T) {
	t.Parallel()
	selects := func(path, name string) bool {
		_, filter, _ := strings.Cut(path, "filter=")
		return regexp.MustCompile(filter).MatchString(name)
	}
	for name, want := range map[string]struct{ sidecar, gateway bool }{
		"listener.10.0.0.1_20000.ssl.handshake":    {true, true},
		"http.public_listener.downstream_rq_total": {true, false},
		// a sidecar's application calls
		"http.upstream.api.default.default.dc1.downstream_rq_total":      {false, true},
		"tcp.upstream.db.default.default.dc1.downstream_cx_total":        {false, true},
		"http.ingress_upstream_8443.downstream_rq_total":                 {false, true},
		"http.ingress_upstream_8443.downstream_cx_total":                 {false, false},
		"http.mesh_gateway_local_peered.web.downstream_rq_total":         {false, true},
		"tcp.mesh_gateway_local.default.downstream_cx_no_route":          {false, true},
		"http.envoy_ready.downstream_rq_total":                           {false, false},
		"http.admin.downstream_rq_total":                                 {false, false},
		"cluster.api.default.dc1.internal.4d32d4d5.consul.ssl.handshake": {false, false},
	} {
		if got := selects(sidecarCalls, name); got != want.sidecar {
			t.Errorf("sidecar, %s: %t", name, got)
		}
		if got := selects(gatewayCalls, name); got != want.gateway {
			t.Errorf("gateway, %s: %t", name, got)
		}
	}
}
