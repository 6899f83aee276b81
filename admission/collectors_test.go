package admission

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestCollectorsAreKnownByTheirRepository(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]bool{
		"public.ecr.aws/datadog/agent:latest": true,
		"datadog/agent":                       true,
		"gcr.io/datadoghq/agent:7":            true,
		"123456789012.dkr.ecr.us-east-1.amazonaws.com/acme/datadog-agent@sha256:00":       true,
		"public.ecr.aws/aws-observability/aws-otel-collector:v0.40.0":                     true,
		"amazon/aws-otel-collector":                                                       true,
		"otel/opentelemetry-collector-contrib:0.110.0":                                    true,
		"ghcr.io/open-telemetry/opentelemetry-collector-releases/opentelemetry-collector": true,
		"quay.io/signalfx/splunk-otel-collector:0.1":                                      true,
		"amazon/aws-xray-daemon:3":                                                        true,
		"public.ecr.aws/xray/aws-xray-daemon:3.x":                                         true,
		"public.ecr.aws/cloudwatch-agent/cloudwatch-agent:1":                              true,
		"amazon/amazon-cloudwatch-agent":                                                  true,
		"public.ecr.aws/aws-observability/aws-for-fluent-bit:stable":                      true,
		"localhost:5000/acme-fluent-bit":                                                  true,
		"fluent/fluentd:v1":                                                               true,
		"newrelic/infrastructure-bundle:3":                                                true,
		"newrelic/nri-ecs":                                                                true,
		"abc.live.dynatrace.com/linux/oneagent":                                           true,
		"telegraf":                                                                        true,
		"timberio/vector:0.40-alpine":                                                     true,
		"grafana/promtail":                                                                true,
		"grafana/alloy:v1":                                                                true,
		"statsd/statsd":                                                                   true,
		"prom/statsd-exporter":                                                            true,
		"840364872350.dkr.ecr.us-east-1.amazonaws.com/aws-appmesh-envoy:v1.29.9.0-prod": true,
		"public.ecr.aws/aws-appconfig/aws-appconfig-agent:2.x":                          true,
		"nginx/nginx-prometheus-exporter:1":                                             true,
		"oliver006/redis_exporter":                                                      true,
		"public.ecr.aws/ecs/amazon-ecs-service-connect-agent:1":                         true,
		"acme/pdf-exporter":                                                             false,
		"acme/vector-search":                                                            false,
		"acme/agent":                                                                    false,
		"grafana/grafana":                                                               false,
		"nginx:1.27":                                                                    false,
		"acme/web:datadog-agent":                                                        false,
		"datadog-agent.example.com/web":                                                 false,
		"":                                                                              false,
	} {
		if got := isCollector(image); got != want {
			t.Errorf("%q: %v, want %v", image, got, want)
		}
	}
}

// The Terraform modules choose as admission does, by a copy of its lists.
func TestModulesKnowTheSameCollectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../terraform/modules/render/collectors.tf")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"collector_repositories": collectorRepositories(), "collector_names": collectorNames(),
		"exported_programs": exportedPrograms(),
	} {
		list := regexp.MustCompile(`(?s)` + name + ` = \[(.*?)\]`).FindSubmatch(text)
		if list == nil {
			t.Fatalf("no list %s", name)
		}
		var got []string
		for _, quoted := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(list[1], -1) {
			got = append(got, string(quoted[1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
