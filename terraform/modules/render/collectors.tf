# Programs beside applications that collect their logs, metrics or traces, by the repositories of their
# images. `consul-ecs admit` has the same lists.
locals {
  collector_repositories = [
    "alloy", "appdynamics/machine-agent", "cadvisor", "coralogix/otel", "datadog/agent", "datadog/operator",
    "datadoghq/agent", "dynatrace/activegate", "elastic/apm-agent", "filebeat", "fluentd", "grafana/agent",
    "grafana/beyla", "instana/agent", "jaeger-agent", "lacework/datacollector", "logdna/agent", "logspout",
    "logzio/docker-collector-logs", "metricbeat", "mackerel/mackerel-container-agent", "newrelic/infrastructure",
    "newrelic/infrastructure-bundle", "newrelic/nri-ecs", "oneagent", "otelcol", "packetbeat", "promtail",
    "splunk/fluentd-hec", "statsd", "statsite", "sumologic/collector", "sysdig/agent", "telegraf", "timberio/vector",
    "vector", "vmagent", "xray-daemon",
  ]
  collector_names = [
    "adot-collector", "appconfig-agent", "appmesh-envoy", "aws-for-fluent-bit", "cloudwatch-agent", "collectd",
    "datadog-agent", "dogstatsd", "dynatrace-oneagent", "ecs-service-connect-agent", "elastic-agent", "firelens",
    "fluent-bit", "fluentbit", "guardduty-agent", "guardduty-agent-fargate", "infrastructure-agent", "log-router",
    "newrelic-fluentbit-output", "otel-agent", "otel-collector", "otel-collector-contrib", "otelcol-contrib",
    "secretsmanager-agent", "secrets-manager-agent", "signalfx-agent", "universalforwarder", "wavefront-proxy",
    "xray-daemon",
  ]
  exported_programs = [
    "apache", "blackbox", "cloudwatch", "consul", "ecs", "elasticsearch", "envoy", "fpm", "graphite", "haproxy", "jmx",
    "json", "kafka", "memcached", "mongodb", "mysql", "mysqld", "nginx", "node", "pgbouncer", "postgres", "process",
    "prometheus", "rabbitmq", "redis", "sql", "ssl", "statsd", "yace",
  ]

  # Of an image without digest, tag and registry.
  collector = join("|", [
    "(?:^|/)(?:${join("|", local.collector_repositories)})$",
    "(?:^|[/-])(?:${join("|", local.collector_names)})$",
    "(?:^|/)opentelemetry-collector[^/]*$",
    "(?:^|[/_-])(?:${join("|", local.exported_programs)})[_-](?:[^/]*[_-])?exporter$",
  ])
  # Without a choice an image may be known at apply only.
  collectors = flatten([for several in [length(local.primary) > 1] : [
    for c in local.primary : c.name
    if can(regex(local.collector, lower(replace(replace(split("@", try(coalesce(c.container.image), ""))[0], "/:[^:/]*$/", ""), "/^(?:[^/]*[.:][^/]*|localhost)\\//", ""))))
  ] if several])
}
