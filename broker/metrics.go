package broker

import (
	"net/http"

	"github.com/meshtask/consul-ecs/internal/metrics"
)

// Metrics are a broker's metrics.
type Metrics struct {
	set metrics.Set

	leader, tokens, describes, alarms            *metrics.Value
	auditFailures, omitted                       *metrics.Value
	answers, transitions, pushes, revokeFailures *metrics.Value
	delivery                                     *metrics.Histogram
}

// NewMetrics returns all of them at 0.
func NewMetrics(version string) *Metrics {
	m := &Metrics{set: metrics.Set{Prefix: "consul_ecs_token_broker_"}}
	gauge, counter := m.set.Gauge, m.set.Counter
	gauge("build_info", "1, with the program's version.", "version").Set(1, version)
	m.leader = gauge("leader", "1 while this broker answers requests, 0 while another one does.")
	m.tokens = gauge("tokens", "Tokens that the broker issued and that are still valid, as of the last sweep.")
	m.answers = counter("answers_total", "Answers of the API, by status code.", "code")
	m.transitions = counter("transitions_total", "Transitions of requests, by the phase that they lead to.", "phase")
	m.pushes = counter("pushes_total", "Pushes to tasks, by result: the status code, or error.", "result")
	m.alarms = counter("alarms_total",
		"Handles that were used twice, elsewhere, or not at all, tokens that were presented elsewhere for revocation, and refusals of the backend.")
	m.revokeFailures = counter("revoke_failures_total",
		"Tokens that could not be revoked. Those without expiry are tried again, the others live until they expire.")
	m.auditFailures = counter("audit_failures_total",
		"Lines of the audit log that could not be written. The broker gives no tokens until it can write one again.")
	m.omitted = counter("omitted_refusals_total",
		"Refused requests without a line in the audit log, since there were too many.")
	m.describes = counter("describe_calls_total", "Calls of DescribeTasks.")
	m.delivery = m.set.Histogram("delivery_seconds", "From the request until the task has answered the push with 200.",
		0.1, 0.3, 1, 3, 10, 30, 120)
	return m
}

// Handler returns what answers /metrics.
func (m *Metrics) Handler() http.Handler { return &m.set }
