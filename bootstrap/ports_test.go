package bootstrap_test

import (
	"encoding/json"
	"testing"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestReadPorts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config map[string]any
		want   bootstrap.Ports
	}{
		{"nothing configured", nil, bootstrap.Ports{}},
		{"empty texts", map[string]any{"bind_port": "", "envoy_stats_bind_addr": ""}, bootstrap.Ports{}},
		{"decoded JSON", map[string]any{"bind_port": float64(21000)}, bootstrap.Ports{Public: 21000}},
		{"exact JSON", map[string]any{"bind_port": json.Number("21000")}, bootstrap.Ports{Public: 21000}},
		{"text, as after HCL", map[string]any{"bind_port": "21000"}, bootstrap.Ports{Public: 21000}},
		{"metrics", map[string]any{"envoy_prometheus_bind_addr": "0.0.0.0:9102", "Envoy_Stats_Bind_Addr": "[::]:9103"},
			bootstrap.Ports{Prometheus: 9102, Stats: 9103}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := bootstrap.ReadPorts(c.config)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestReadPortsNamesAllInvalidValues(t *testing.T) {
	t.Parallel()
	_, err := bootstrap.ReadPorts(map[string]any{"bind_port": float64(70000), "envoy_prometheus_bind_addr": "metrics"})
	testkit.WantError[*bootstrap.InvalidError](t, err, "generate Envoy bootstrap: invalid values\n"+
		"  proxy.config.bind_port: must be a port, not \"70000\"\n"+
		"  proxy.config.envoy_prometheus_bind_addr: must be <IP address>:<port>, not \"metrics\"")
}
