package bootstrap

import (
	"slices"
	"strings"
)

// statsSinks returns where Envoy pushes its metrics to.
func (in inputs) statsSinks() list {
	var out list
	if e := in.opts.statsd; e != nil {
		out = append(out, statsdSink("envoy.stat_sinks.statsd", "StatsdSink", *e))
	}
	if e := in.opts.dogstatsd; e != nil {
		out = append(out, statsdSink("envoy.stat_sinks.dog_statsd", "DogStatsdSink", *e))
	}
	out = appendRaw(out, in.opts.extraSinks)
	if in.opts.telemetryCollectorDir != "" {
		out = append(out, telemetrySink())
	}
	return out
}

func statsdSink(name, message string, e endpoint) object {
	return object{
		"name": name,
		"typedConfig": object{
			"@type":   typeURL + "envoy.config.metrics.v3." + message,
			"address": e.address(),
		},
	}
}

func telemetrySink() object {
	return object{
		"name": "envoy.stat_sinks.metrics_service",
		"typed_config": object{
			"@type":                 typeURL + "envoy.config.metrics.v3.MetricsServiceConfig",
			"transport_api_version": "V3",
			"grpc_service":          object{"envoy_grpc": object{"cluster_name": telemetryName}},
			"emit_tags_as_labels":   true,
		},
	}
}

// flushInterval returns the interval, empty for Envoy's own default. A collector that no client tuned is fed once a
// minute.
func (in inputs) flushInterval() string {
	o := in.opts
	untuned := o.flushInterval == "" && o.statsd == nil && o.dogstatsd == nil && len(o.extraSinks) == 0
	if o.telemetryCollectorDir != "" && untuned {
		return "60s"
	}
	return o.flushInterval
}

// statsConfig returns the user's own, or the tags that make Consul's names in Envoy's metrics searchable.
func (in inputs) statsConfig() any {
	if in.opts.statsConfig != nil {
		return in.opts.statsConfig
	}
	return object{"stats_tags": in.statsTags(), "use_all_default_tags": true}
}

// statsTags returns the user's, then those cut out of metric names, then who this proxy is, unless the user
// set that one.
func (in inputs) statsTags() list {
	var out list
	var own []string
	for _, tag := range in.opts.statsTags {
		name, value, given := strings.Cut(tag, "=")
		if !given {
			value = "1"
		}
		name = strings.ToLower(name)
		own = append(own, name)
		out = append(out, fixedTag(name, value))
	}
	for _, r := range tagRules() {
		out = append(out, object{"tag_name": r.tag, "regex": r.regex})
	}
	for _, t := range [][2]string{
		{"local_cluster", in.cluster},
		{"consul.source.service", in.source},
		{"consul.source.namespace", in.namespace},
		{"consul.source.partition", in.partition},
		{"consul.source.datacenter", in.params.Proxy.Datacenter},
	} {
		if t[1] != "" && !slices.Contains(own, t[0]) {
			out = append(out, fixedTag(t[0], t[1]))
		}
	}
	return out
}

func fixedTag(name, value string) object {
	return object{"tag_name": name, "fixed_value": value}
}
