package admission

import (
	"slices"
	"strings"
)

// isCollector reports whether an image is that of a known program beside applications, which collects
// their logs, metrics or traces, or serves them locally. Its repository counts, wherever that is:
// public.ecr.aws/datadog/agent, or acme/datadog-agent.
func isCollector(image string) bool {
	repository := repositoryOf(image)
	name := repository[strings.LastIndex(repository, "/")+1:]
	is := func(known string) bool { return isRepository(repository, known) }
	ends := func(known string) bool { return name == known || strings.HasSuffix(name, "-"+known) }
	return slices.ContainsFunc(collectorRepositories(), is) || slices.ContainsFunc(collectorNames(), ends) ||
		strings.HasPrefix(name, "opentelemetry-collector") || isExporter(name)
}

// isRepository reports whether a repository is a known one, or a copy of it below other names.
func isRepository(repository, known string) bool {
	return repository == known || strings.HasSuffix(repository, "/"+known)
}

// repositoryOf returns the repository of an image without registry, tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if tag := strings.LastIndex(image, ":"); tag > strings.LastIndex(image, "/") {
		image = image[:tag]
	}
	registry, rest, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(registry, ".:") || registry == "localhost") {
		image = rest
	}
	return strings.ToLower(image)
}

// isExporter reports whether the name of a repository is that of an exporter of another program's
// metrics, such as redis_exporter and nginx-prometheus-exporter.
func isExporter(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	known := func(word string) bool { return slices.Contains(exportedPrograms(), word) }
	return len(words) > 1 && words[len(words)-1] == "exporter" && slices.ContainsFunc(words, known)
}

// collectorRepositories returns repositories, or the ends of those, whose last part alone says too little.
func collectorRepositories() []string {
	return []string{
		"alloy", "appdynamics/machine-agent", "cadvisor", "coralogix/otel", "datadog/agent", "datadog/operator",
		"datadoghq/agent",
		"dynatrace/activegate", "elastic/apm-agent", "filebeat", "fluentd", "grafana/agent", "grafana/beyla",
		"instana/agent", "jaeger-agent",
		"lacework/datacollector", "logdna/agent", "logspout", "logzio/docker-collector-logs", "metricbeat",
		"mackerel/mackerel-container-agent",
		"newrelic/infrastructure", "newrelic/infrastructure-bundle", "newrelic/nri-ecs", "oneagent", "otelcol",
		"packetbeat", "promtail",
		"splunk/fluentd-hec", "statsd", "statsite", "sumologic/collector", "sysdig/agent", "telegraf",
		"timberio/vector",
		"vector", "vmagent", "xray-daemon",
	}
}

// collectorNames returns the last parts of repositories, which may follow a prefix such as the name
// of a company.
func collectorNames() []string {
	return []string{
		"adot-collector", "appconfig-agent", "appmesh-envoy", "aws-for-fluent-bit", "cloudwatch-agent", "collectd",
		"datadog-agent", "dogstatsd",
		"dynatrace-oneagent", "ecs-service-connect-agent", "elastic-agent", "firelens", "fluent-bit", "fluentbit",
		"guardduty-agent", "guardduty-agent-fargate",
		"infrastructure-agent", "log-router", "newrelic-fluentbit-output", "otel-agent", "otel-collector",
		"otel-collector-contrib", "otelcol-contrib",
		"secretsmanager-agent", "secrets-manager-agent", "signalfx-agent", "universalforwarder", "wavefront-proxy",
		"xray-daemon",
	}
}

// exportedPrograms returns those whose metrics an exporter has.
func exportedPrograms() []string {
	return []string{
		"apache", "blackbox", "cloudwatch", "consul", "ecs", "elasticsearch", "envoy", "fpm", "graphite", "haproxy",
		"jmx", "json", "kafka",
		"memcached", "mongodb", "mysql", "mysqld", "nginx", "node", "pgbouncer", "postgres", "process", "prometheus",
		"rabbitmq",
		"redis", "sql", "ssl", "statsd", "yace",
	}
}
