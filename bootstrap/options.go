package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys of the proxy's configuration that shape the bootstrap
// (Consul's Envoy integration reference, "bootstrap configuration").
const (
	keyStatsdURL     = "envoy_statsd_url"
	keyDogstatsdURL  = "envoy_dogstatsd_url"
	keyStatsTags     = "envoy_stats_tags"
	keyStatsSinks    = "envoy_extra_stats_sinks_json"
	keyStatsConfig   = "envoy_stats_config_json"
	keyFlushInterval = "envoy_stats_flush_interval"
	keyPrometheus    = "envoy_prometheus_bind_addr"
	keyStatsBind     = "envoy_stats_bind_addr"
	keyClusters      = "envoy_extra_static_clusters_json"
	keyListeners     = "envoy_extra_static_listeners_json"
	keyTracing       = "envoy_tracing_json"
	keyTelemetryDir  = "envoy_telemetry_collector_bind_socket_dir"
	keyTemplate      = "envoy_bootstrap_json_tpl"
)

// options are the decoded keys; a nil or empty field was not configured.
type options struct {
	statsd, dogstatsd     *endpoint
	statsTags             []string
	extraSinks            []json.RawMessage
	statsConfig, tracing  json.RawMessage
	flushInterval         string
	prometheus, stats     *socket
	extraClusters         []json.RawMessage
	extraListeners        []json.RawMessage
	telemetryCollectorDir string
}

func readOptions(config map[string]any, env map[string]string, bad *InvalidError) options {
	r := reader{config: config, bad: bad}
	if r.text(keyTemplate) != "" {
		r.reject(keyTemplate, "templates for the whole bootstrap are not supported; use %s, %s, %s or %s instead",
			keyClusters, keyListeners, keyStatsSinks, keyStatsConfig)
	}
	return options{
		statsd:                r.sink(keyStatsdURL, env),
		dogstatsd:             r.sink(keyDogstatsdURL, env),
		statsTags:             r.texts(keyStatsTags),
		extraSinks:            r.fragments(keyStatsSinks),
		statsConfig:           r.object(keyStatsConfig),
		flushInterval:         r.flushInterval(keyFlushInterval),
		prometheus:            r.bind(keyPrometheus),
		stats:                 r.bind(keyStatsBind),
		extraClusters:         r.fragments(keyClusters),
		extraListeners:        r.fragments(keyListeners),
		tracing:               r.object(keyTracing),
		telemetryCollectorDir: r.text(keyTelemetryDir),
	}
}

// reader takes values out of the opaque map and notes what is wrong.
type reader struct {
	config map[string]any
	bad    *InvalidError
}

func (r reader) reject(key, format string, args ...any) {
	r.bad.add("proxy.config."+key, format, args...)
}

// value finds a key. Consul accepts any letter case when the exact key is
// missing; of several, the first in order counts, so that the answer is stable.
func (r reader) value(key string) any {
	if v, ok := r.config[key]; ok {
		return v
	}
	var found []string
	for k := range r.config {
		if strings.EqualFold(k, key) {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return r.config[slices.Min(found)]
}

func (r reader) text(key string) string {
	s, ok := weakText(r.value(key))
	if !ok {
		r.reject(key, "must be a string")
	}
	return s
}

// weakText returns Consul's lenient reading of a text: HCL and environment substitution turn some strings
// into numbers or booleans.
func weakText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		if v {
			return "1", true
		}
		return "0", true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int:
		return strconv.Itoa(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// texts reads a list. One value counts as a list of one: Consul unwraps such
// lists when it stores proxy-defaults.
func (r reader) texts(key string) []string {
	var items []any
	switch v := r.value(key).(type) {
	case nil:
		return nil
	case []any:
		items = v
	case []string:
		return v
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
		items = []any{v} // is rejected below
	default:
		items = []any{v}
	}
	out := make([]string, 0, len(items))
	for i, item := range items {
		s, ok := weakText(item)
		if !ok {
			r.reject(fmt.Sprintf("%s[%d]", key, i), "must be a string")
		}
		out = append(out, s)
	}
	return out
}

func (r reader) bind(key string) *socket {
	raw := r.text(key)
	if raw == "" {
		return nil
	}
	s, err := parseSocket(raw)
	if err != nil {
		r.reject(key, "%v", err)
	}
	return &s
}

func (r reader) sink(key string, env map[string]string) *endpoint {
	raw := r.text(key)
	if raw == "" {
		return nil
	}
	e, err := sinkEndpoint(raw, env)
	if err != nil {
		r.reject(key, "%v", err)
	}
	return &e
}

// flushInterval returns a protobuf duration within Envoy's limits.
func (r reader) flushInterval(key string) string {
	raw := r.text(key)
	if raw == "" {
		return ""
	}
	d, err := time.ParseDuration(raw)
	seconds := regexp.MustCompile(`^[0-9]+(\.[0-9]{1,9})?s$`).MatchString(raw)
	if !seconds || err != nil || d < time.Millisecond || d >= 5*time.Minute {
		r.reject(key, `must be seconds such as "10s" or "0.5s", at least 0.001s and below 300s, not %q`, raw)
	}
	return raw
}

// object reads a text that holds one JSON object.
func (r reader) object(key string) json.RawMessage {
	raw := r.text(key)
	if raw == "" {
		return nil
	}
	var msg json.RawMessage
	if err := json.Unmarshal([]byte(raw), &msg); err != nil {
		r.reject(key, "must be a JSON object in a string: %v", syntax(err, 0))
		return nil
	}
	if !isObject(msg) {
		r.reject(key, "must be a JSON object in a string")
	}
	return msg
}

// fragments reads a text that holds JSON objects separated by commas, as they
// would stand inside a JSON array. An array of them is taken as its elements,
// as Envoy does.
func (r reader) fragments(key string) []json.RawMessage {
	raw := r.text(key)
	if raw == "" {
		return nil
	}
	const want = "must be JSON objects in a string, separated by commas"
	msgs, err := elements("["+raw+"]", 1)
	switch {
	case err != nil:
		r.reject(key, want+": %v", syntax(err, 1))
	case !slices.ContainsFunc(msgs, func(m json.RawMessage) bool { return !isObject(m) }):
		return msgs
	default:
		r.reject(key, want)
	}
	return nil
}

// elements splits an array, and arrays within it down to a depth.
func elements(array string, depth int) ([]json.RawMessage, error) {
	var msgs, out []json.RawMessage
	if err := json.Unmarshal([]byte(array), &msgs); err != nil {
		return nil, err
	}
	for _, m := range msgs {
		inner := []json.RawMessage{m}
		if depth > 0 && bytes.HasPrefix(m, []byte("[")) {
			inner, _ = elements(string(m), depth-1) // cannot fail: m is valid JSON
		}
		out = append(out, inner...)
	}
	return out, nil
}

func isObject(msg json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(msg), []byte("{"))
}

// syntax adds the place of a JSON error; shift is what we put in front.
func syntax(err error, shift int64) error {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return fmt.Errorf("%w (byte %d)", err, max(s.Offset-shift, 0))
	}
	return err
}
