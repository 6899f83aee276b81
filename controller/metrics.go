package controller

import (
	"net/http"
	"time"

	"github.com/meshtask/consul-ecs/internal/metrics"
)

// Metrics are a controller's metrics; docs/CONTROLLER.md describes them.
type Metrics struct {
	set metrics.Set

	leader, interval, lastSuccess             *metrics.Value
	tasks, tokens, services, foreign, kept    *metrics.Value
	unclaimed                                 *metrics.Value
	passes, deletions, failures, setupChanges *metrics.Value
	setupErrors, setupFailing                 *metrics.Value
	awsCalls, throttles                       *metrics.Value
	consulRequests, consulErrors              *metrics.Value
	duration                                  *metrics.Histogram
}

// metricPrefix begins every name.
const metricPrefix = "consul_ecs_controller_"

// NewMetrics returns all of them at 0.
func NewMetrics(version string) *Metrics {
	m := &Metrics{set: metrics.Set{Prefix: metricPrefix}}
	gauge, counter := m.set.Gauge, m.set.Counter
	gauge("build_info", "1, with the program's version.", "version").Set(1, version)
	m.leader = gauge("leader", "1 while this controller leads, else 0.")
	m.lastSuccess = gauge("last_success_timestamp_seconds",
		"When the last pass succeeded, Unix time; 0 before the first.")
	m.interval = gauge("interval_seconds", "The pause before the next pass.")
	m.duration = m.set.Histogram("pass_duration_seconds", "How long passes take.", 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300)
	m.passes = counter("passes_total", "Passes, by result: ok or error.", "result")
	m.tasks = gauge("tasks", "Running tasks of the cluster, by ECS.")
	m.tokens = gauge("tokens", "ACL tokens of the cluster's tasks.")
	m.services = gauge("services", "Service instances of the cluster's tasks.")
	m.foreign = gauge("foreign",
		"Tokens and services that look like those of this cluster's tasks but cannot be interpreted; they are kept.")
	m.unclaimed = gauge("unclaimed_tokens",
		"Tokens of the auth methods that name clusters of which no controller has a record; they are kept.")
	m.kept = gauge("kept_tasks", "Tasks that are not running and whose leftovers are kept, by reason.", "reason")
	m.deletions = counter("deletions_total", "What was deleted, by kind and by the reason that proved it.",
		"kind", "reason")
	m.failures = counter("deletion_failures_total", "Deletions that failed; the next pass retries them.")
	m.setupChanges = counter("setup_changes_total", "Objects in Consul that setup created or corrected.")
	m.setupErrors = counter("setup_errors_total", "Attempts of setup that failed.")
	m.setupFailing = gauge("setup_failing",
		"1 while the leader's last setup failed: tasks may be unable to log in; else 0.")
	m.awsCalls = counter("aws_calls_total", "Calls of the ECS API, retries included.")
	m.throttles = counter("aws_throttles_total", "Calls of the ECS API that AWS refused because there were too many.")
	m.consulRequests = counter("consul_requests_total", "Requests to Consul, by kind: read or write.", "kind")
	m.consulErrors = counter("consul_errors_total",
		"Requests to Consul without an answer, or with a status of 400 or more except 404.")
	for _, result := range []string{"ok", "error"} {
		m.passes.Add(0, result)
	}
	for _, kind := range []string{"read", "write"} {
		m.consulRequests.Add(0, kind)
	}
	return m
}

// Handler returns what answers /metrics.
func (m *Metrics) Handler() http.Handler { return &m.set }

// Transport wraps a Consul client's transport and counts its requests.
func (m *Metrics) Transport(next http.RoundTripper) http.RoundTripper {
	return countingTransport{m, next}
}

type countingTransport struct {
	*Metrics
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A request whose own context ended does not
// count as an error of Consul.
func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "write"
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		kind = "read"
	}
	c.consulRequests.Add(1, kind)
	resp, err := c.next.RoundTrip(r)
	if err != nil && r.Context().Err() == nil ||
		err == nil && resp.StatusCode >= 400 && resp.StatusCode != http.StatusNotFound {
		c.consulErrors.Add(1)
	}
	return resp, err
}

func (m *Metrics) setup(changed int, err error) {
	m.setupChanges.Add(float64(changed))
	m.setupFailing.Set(0)
	if err != nil {
		m.setupErrors.Add(1)
		m.setupFailing.Set(1)
	}
}

// resetLeaderGauges zeroes the gauges of a leader, so that sums over all controllers
// of a cluster do not count them twice.
func (m *Metrics) resetLeaderGauges() {
	for _, v := range []*metrics.Value{m.leader, m.interval, m.setupFailing, m.tasks, m.tokens, m.services, m.foreign,
		m.unclaimed} {
		v.Set(0)
	}
	m.kept.Replace(nil)
}

// count counts what a pass did, also if its context ended.
func (m *Metrics) count(r Report) {
	for _, i := range r.Deleted {
		m.deletions.Add(1, i.Kind, string(i.Reason))
	}
	m.awsCalls.Add(float64(r.AWS.Calls))
	m.throttles.Add(float64(r.AWS.Throttles))
}

func (m *Metrics) pass(r Report, err error, took, next time.Duration, now time.Time) {
	m.duration.Observe(took.Seconds())
	m.interval.Set(next.Seconds())
	m.failures.Add(float64(len(r.Failed)))
	if err != nil {
		m.passes.Add(1, "error")
		return // what it found may be incomplete
	}
	m.passes.Add(1, "ok")
	m.lastSuccess.Set(float64(now.Unix()))
	m.tasks.Set(float64(r.Running))
	m.tokens.Set(float64(r.Tokens))
	m.services.Set(float64(r.Services))
	m.foreign.Set(float64(r.Foreign))
	m.unclaimed.Set(float64(r.Unclaimed))
	kept := map[string]float64{}
	for _, k := range r.Kept {
		kept[string(k.Reason)]++
	}
	m.kept.Replace(kept)
}
