package broker

import (
	"net/http"

	"github.com/meshtask/consul-ecs/internal/metrics"
)

// Metrics are a broker's metrics.
type Metrics struct {
	set metrics.Set

	leader, tokens, describes, alarms            *metrics.Value
	answers, transitions, pushes, revokeFailures *metrics.Value
	delivery                                     *metrics.Histogram
}

// prefix is that of every name.
const prefix = "consul_ecs_token_broker_"

// NewMetrics returns all of them at 0.
func NewMetrics(version string) *Metrics {
	m := &Metrics{}
	gauge := func(name, help string, labels ...string) *metrics.Value {
		return m.set.Gauge(prefix+name, help, labels...)
	}
	counter := func(name, help string, labels ...string) *metrics.Value {
		return m.set.Counter(prefix+name+"_total", help, labels...)
	}
	gauge("build_info", "1, with the program's version.", "version").Set(1, version)
	m.leader = gauge("leader", "1 while this broker answers requests, 0 while another one does.")
	m.tokens = gauge("tokens", "Tokens that the broker gave and that live, as of the last sweep.")
	m.answers = counter("answers", "Answers of the API, by status code.", "code")
	m.transitions = counter("transitions", "Transitions of requests, by the phase that they lead to.", "phase")
	m.pushes = counter("pushes", "Pushes to tasks, by result: the status code, or error.", "result")
	m.alarms = counter("alarms", "Handles that were used twice, elsewhere, or not at all.")
	m.revokeFailures = counter("revoke_failures", "Tokens that could not be revoked; they end with their TTL.")
	m.describes = counter("describe_calls", "Calls of DescribeTasks.")
	m.delivery = m.set.Histogram(prefix+"delivery_seconds", "From the request until the task has answered the push with 200.", 0.1, 0.3, 1, 3, 10, 30, 120)
	return m
}

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler { return &m.set }
