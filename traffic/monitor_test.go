package traffic

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/failure"
)

// domain is what follows the service and its namespace in the names of clusters.
const domain = ".default.dc1.internal.fa811dff-3820-b6e6-4ac4-db4f654e994a.consul."

// TestCounters classifies counters by the names that Envoy 1.40 gives them with Consul 1.20: the filter chooses those
// with a kind.
func TestCounters(t *testing.T) {
	t.Parallel()
	filter := regexp.MustCompile(countersFilter)
	for name, want := range map[string]string{
		"connect_authz.rbac.denied":                              "DENIED callers connections",
		"http.public_listener.rbac.denied":                       "DENIED callers requests",
		"cluster.ghost" + domain + "upstream_cx_none_healthy":    "NO-INSTANCE ghost ",
		"cluster.v1.api" + domain + "upstream_cx_overflow":       "LIMIT api connections",
		"cluster.api.ns.part.dc1.internal.x.upstream_rq_timeout": "TIMEOUT api ",
		"cluster.api.default.b.external.x.upstream_rq_rx_reset":  "RESET api ",
		"cluster.f~0~api" + domain + "upstream_cx_connect_fail":  "CONNECT api refused or closed",
		"cluster.api" + domain + "upstream_cx_connect_timeout":   "CONNECT api timed out",
		"cluster.api" + domain + "ssl.fail_verify_san":           "TLS api its certificate is another service's",
		"cluster.api" + domain + "upstream_rq_pending_overflow":  "LIMIT api waiting requests",
		"cluster.local_app.upstream_cx_connect_fail":             "APP-REFUSED application refused or closed",
		"cluster.local_app.upstream_cx_protocol_error":           "PROTOCOL application ",
		"listener.10.42.0.7_20000.ssl.fail_verify_no_cert":       "CALLER-TLS callers no certificate",
		"http.upstream.api.x.no_route":                           "NO-ROUTE api ",
		"tcp.upstream.api.x.downstream_cx_no_route":              "NO-ROUTE api ",
		"http.upstream.api.x.downstream_cx_protocol_error":       "PROTOCOL api of the application",
		"http.public_listener.downstream_cx_protocol_error":      "PROTOCOL callers ",
		// No faults of the mesh, or none at all.
		"cluster.local_agent.upstream_cx_connect_fail":     "",
		"cluster.self_admin.upstream_cx_connect_fail":      "",
		"cluster.original-destination.upstream_rq_timeout": "",
		"cluster.api" + domain + "upstream_cx_total":       "",
		"cluster.api" + domain + "ssl.handshake":           "",
		"http.public_listener.rbac.allowed":                "",
		"http.public_listener.rbac.shadow_denied":          "",
		"listener.10.42.0.7_20000.ssl.handshake":           "",
		"http.envoy_ready.downstream_cx_protocol_error":    "",
		"tcp.mesh_gateway_local.downstream_cx_no_route":    "",
	} {
		got := ""
		if c, ok := classify(name); ok && filter.MatchString(name) {
			got = strings.TrimPrefix(string(c.kind.id), "CE-TRAFFIC-") + " " + c.peer + " " + c.reason
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestKindsHaveTexts checks that each kind is in the table of failures, and that its line is found there.
func TestKindsHaveTexts(t *testing.T) {
	t.Parallel()
	for _, k := range []*kind{denied, noInstance, noRoute, noConnection, upstreamTLS, callerTLS, appRefused, timedOut,
		reset, badProtocol, overflow} {
		what, fix := k.texts()
		if got := failure.Of(what + ": fix=" + fix); got != k.id {
			t.Errorf("the line of %s has the ID %q", k.id, got)
		}
	}
}

// read is one read of an Envoy, at a time in seconds.
type read struct {
	at     int
	counts map[string]uint64
	known  map[string]members
}

// TestMonitor compares what is logged for reads of an Envoy.
func TestMonitor(t *testing.T) {
	t.Parallel()
	const (
		rbac    = "connect_authz.rbac.denied"
		none    = "cluster.api" + domain + "upstream_cx_none_healthy"
		fail    = "cluster.api" + domain + "upstream_cx_connect_fail"
		timeout = "cluster.api" + domain + "upstream_cx_connect_timeout"
		san     = "cluster.api" + domain + "ssl.fail_verify_san"
		app     = "cluster.local_app.upstream_cx_connect_fail"
	)
	type counts = map[string]uint64
	empty, healthy := map[string]members{"api": {0, 2}}, map[string]members{"api": {2, 2}}
	for name, tc := range map[string]struct {
		reads []read
		want  []string
	}{
		"healthy": {[]read{{0, nil, healthy}, {5, nil, nil}, {900, nil, healthy}}, nil},
		"denied once, then quiet": {
			[]read{{0, nil, nil}, {5, counts{rbac: 1}, nil}, {60, counts{rbac: 1}, nil}, {65, counts{rbac: 1},
				nil}, {130, counts{rbac: 1}, nil}},
			[]string{"5 WARN DENIED count=1 since=5 reason=connections", "65 INFO ended DENIED count=1 since=5"},
		},
		"denied all the time: a line every ten minutes": {
			endless(rbac),
			[]string{"0 WARN DENIED count=1 since=0 reason=connections",
				"600 WARN DENIED count=61 since=0 reason=connections",
				"1200 WARN DENIED count=121 since=0 reason=connections"},
		},
		"one failed connection is chance": {[]read{{0, nil, nil}, {5, counts{fail: 1}, nil}, {70,
			counts{fail: 2}, nil}, {200, counts{fail: 2}, nil}}, nil},
		"a timeout and a failed handshake count once": {
			[]read{{0, nil, nil}, {5, counts{fail: 5, timeout: 2}, nil}, {10, counts{fail: 9, timeout: 2,
				san: 4}, nil}},
			[]string{`5 WARN CONNECT count=5 since=5 reason=3 refused or closed, 2 timed out`,
				`10 WARN TLS count=4 since=10 reason=its certificate is another service's`},
		},
		"no instance, by calls": {
			[]read{{0, nil, healthy}, {5, counts{none: 2}, empty}, {10, counts{none: 2}, empty}, {15,
				counts{none: 2}, healthy}},
			[]string{"5 WARN NO-INSTANCE count=2 since=5 instances=2", "15 INFO ended NO-INSTANCE count=2 since=5"},
		},
		"no instance, without a call, after a while": {
			[]read{{0, nil, empty}, {15, nil, empty}, {30, nil, empty}, {45, nil, empty}, {50, nil, healthy}},
			[]string{"45 WARN NO-INSTANCE count=0 since=0 instances=2", "50 INFO ended NO-INSTANCE count=0 since=0"},
		},
		"started later than its caller": {
			[]read{{0, nil, empty}, {15, counts{none: 1}, empty}, {30, counts{none: 1}, healthy}, {120,
				counts{none: 1}, healthy}}, nil,
		},
		"an instance comes and goes: a line a minute at most": {
			[]read{{0, counts{none: 2}, empty}, {5, counts{none: 2}, healthy}, {10, counts{none: 4}, empty},
				{15, counts{none: 4}, healthy},
				{58, counts{none: 6}, empty}, {61, counts{none: 8}, empty}},
			[]string{"0 WARN NO-INSTANCE count=2 since=0 instances=2", "5 INFO ended NO-INSTANCE count=2 since=0",
				"61 WARN NO-INSTANCE count=6 since=10 instances=2"},
		},
		"an upstream that was removed": {
			[]read{{0, counts{none: 2}, empty}, {5, nil, map[string]members{}}},
			[]string{"0 WARN NO-INSTANCE count=2 since=0 instances=2", "5 INFO ended NO-INSTANCE count=2 since=0"},
		},
		"Envoy starts again": {
			[]read{{0, counts{app: 5}, nil}, {5, counts{app: 3}, nil}, {605, counts{app: 3}, nil}},
			[]string{"0 WARN APP-REFUSED count=5 since=0 reason=refused or closed",
				"605 INFO ended APP-REFUSED count=8 since=0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := monitor{service: "web", upstreams: []string{"api"}, faults: map[subject]*fault{},
				empty: map[string]time.Time{}}
			start := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
			var got []string
			for _, r := range tc.reads {
				for _, l := range m.observe(start.Add(time.Duration(r.at)*time.Second), r.counts, r.known) {
					got = append(got, fmt.Sprintf("%d %s", r.at, shown(t, start, l)))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// endless returns reads in which the counter grows every ten seconds, for twenty minutes.
func endless(counter string) (reads []read) {
	for i := range 121 {
		reads = append(reads, read{10 * i, map[string]uint64{counter: uint64(i + 1)}, nil})
	}
	return reads
}

// shown returns a line with what differs between faults, and its times in seconds.
func shown(t *testing.T, start time.Time, l line) string {
	t.Helper()
	text := l.level.String()
	text = strings.ToUpper(text)
	what, over := strings.CutPrefix(l.text, "ended: ")
	if over {
		text += " ended"
	}
	text += " " + strings.TrimPrefix(string(failure.Of(what)), "CE-TRAFFIC-")
	for pair := range slices.Chunk(l.args, 2) {
		switch key := pair[0].(string); key {
		case "since":
			since, err := time.Parse(time.RFC3339, pair[1].(string))
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf(" since=%.0f", since.Sub(start).Seconds())
		case "count", "instances", "reason":
			text += fmt.Sprintf(" %s=%v", key, pair[1])
		}
	}
	if l.level == hclog.Warn && !slices.Contains(l.args, any("fix")) {
		t.Errorf("%q does not say what to do", l.text)
	}
	return text
}
