package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, tc := range cases() {
		if !tc.golden {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			got, err := Generate(tc.params)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, tc.name+".json", got)
		})
	}
}

func TestSameParamsGiveSameBytes(t *testing.T) {
	t.Parallel()
	for _, tc := range cases() {
		first, err := Generate(tc.params)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Generate(tc.params)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: two results for the same values", tc.name)
		}
	}
}

// The old program took the file from a command's output and its warnings with
// it; a value of the registration could do the same to the command's template.
func TestNothingButJSONWhateverTheValues(t *testing.T) {
	t.Parallel()
	nasty := "a\"},\n{\"b\\\u2028<&>"
	p := sidecar(nasty, object{keyStatsTags: []any{nasty, "Key=" + nasty}, keyTelemetryDir: nasty})
	p.Token, p.Proxy.Datacenter, p.Proxy.Namespace, p.Proxy.Partition = nasty, nasty, nasty, nasty
	doc, err := Generate(p)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Node struct {
			ID, Cluster string
			Metadata    struct{ Namespace, Partition string }
		}
		StatsConfig struct {
			Tags []struct {
				Name  string `json:"tag_name"`
				Value string `json:"fixed_value"`
			} `json:"stats_tags"`
		} `json:"stats_config"`
	}
	if err := json.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{
		"cluster": got.Node.Cluster, "namespace": got.Node.Metadata.Namespace,
		"partition": got.Node.Metadata.Partition, "first tag": got.StatsConfig.Tags[0].Name,
		"second tag": got.StatsConfig.Tags[1].Value,
	} {
		if v != nasty {
			t.Errorf("%s = %q, want %q", name, v, nasty)
		}
	}
}

// everyWrong is the error's text: one line per value, in the order of reading.
const everyWrong = `generate Envoy bootstrap: invalid values
  proxy ID: must not be empty
  kind: must be connect-proxy, mesh-gateway, terminating-gateway or api-gateway, not "ingress-gateway"
  gRPC address: must be <IP address>:<port>; "consul.internal" is not an IP address
  admin bind address: must be <IP address>:<port>, not "19000"
  proxy-defaults.AccessLogs.JSONFormat: must be a JSON object: is null
  proxy-defaults.AccessLogs.Type: must be stdout, stderr or file, not "syslog"
  proxy.config.envoy_bootstrap_json_tpl: templates for the whole bootstrap are not supported; ` +
	`use envoy_extra_static_clusters_json, envoy_extra_static_listeners_json, ` +
	`envoy_extra_stats_sinks_json or envoy_stats_config_json instead
  proxy.config.envoy_statsd_url: must be udp://<IP address>:<port> or unix:///<path>, not "tcp://127.0.0.1:8125"
  proxy.config.envoy_dogstatsd_url: refers to the environment variable "NOT_SET", which is not set
  proxy.config.envoy_stats_tags[1]: must be a string
  proxy.config.envoy_extra_stats_sinks_json: must be JSON objects in a string, separated by commas: ` +
	`invalid character ']' looking for beginning of value (byte 4)
  proxy.config.envoy_stats_config_json: must be a JSON object in a string
  proxy.config.envoy_stats_flush_interval: must be seconds such as "10s" or "0.5s", ` +
	`at least 0.001s and below 300s, not "10"
  proxy.config.envoy_prometheus_bind_addr: must be <IP address>:<port>, not "0.0.0.0"
  proxy.config.envoy_stats_bind_addr: must be <IP address>:<port>; port "65536" is not between 1 and 65535
  proxy.config.envoy_extra_static_clusters_json: must be JSON objects in a string, separated by commas
  proxy.config.envoy_extra_static_listeners_json: must be a string
  proxy.config.envoy_tracing_json: must be a JSON object in a string: ` +
	`invalid character 'x' looking for beginning of object key string (byte 2)
  proxy.config.envoy_telemetry_collector_bind_socket_dir: must be a string`

func TestEveryWrongValueAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Generate(Params{
		Proxy: Proxy{
			Kind: "ingress-gateway",
			Config: object{
				keyTemplate:      "{}",
				keyStatsdURL:     "tcp://127.0.0.1:8125",
				keyDogstatsdURL:  "$NOT_SET",
				keyStatsTags:     []any{"a", object{"b": "c"}},
				keyStatsSinks:    "{},",
				keyStatsConfig:   "[]",
				keyFlushInterval: "10",
				keyPrometheus:    "0.0.0.0",
				keyStatsBind:     "0.0.0.0:65536",
				keyClusters:      `{"a":1},"b"`,
				keyListeners:     object{"name": "a"},
				keyTracing:       "{x",
				keyTelemetryDir:  []any{},
			},
			AccessLogs: &AccessLogs{Enabled: true, Type: "syslog", JSONFormat: "null"},
		},
		GRPC:      GRPC{Address: "consul.internal:8502"},
		AdminBind: "19000",
	})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(everyWrong, err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Violations) != 19 {
		t.Errorf("violations = %+v, want 19", invalid)
	}
}

func TestWrongSingleValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Params)
		want   string
	}{
		"no destination":  {func(p *Params) { p.Proxy.Destination = "" }, "proxy.DestinationServiceName"},
		"ready host name": {func(p *Params) { p.ReadyBind = "envoy.internal:22000" }, "ready bind address"},
		"no gRPC address": {func(p *Params) { p.GRPC.Address = "" }, "gRPC address"},
		"empty socket":    {func(p *Params) { p.GRPC.Address = "unix://" }, "gRPC address"},
		"path in address": {func(p *Params) { p.GRPC.Address = "http://127.0.0.1:8502/" }, "gRPC address"},
		"port 0":          {func(p *Params) { p.GRPC.Address = "127.0.0.1:0" }, "gRPC address"},
		"TLS, no CA":      {func(p *Params) { p.GRPC.Address = "https://127.0.0.1:8503" }, "gRPC CA"},
		"CA is no PEM":    {func(p *Params) { p.GRPC = GRPC{"https://127.0.0.1:8503", "ca.pem"} }, "gRPC CA"},
		"file without path": {func(p *Params) {
			p.Proxy.AccessLogs = &AccessLogs{Enabled: true, Type: "file"}
		}, "proxy-defaults.AccessLogs.Path"},
		"log format is a list": {func(p *Params) {
			p.Proxy.AccessLogs = &AccessLogs{Enabled: true, JSONFormat: "[1]"}
		}, "proxy-defaults.AccessLogs.JSONFormat"},
		"statsd without port": {func(p *Params) {
			p.Proxy.Config = object{keyStatsdURL: "udp://127.0.0.1"}
		}, "proxy.config.envoy_statsd_url"},
		"statsd not a URL": {func(p *Params) {
			p.Proxy.Config = object{keyStatsdURL: "udp://127.0.0.1:port"}
		}, "proxy.config.envoy_statsd_url"},
		"statsd socket without path": {func(p *Params) {
			p.Proxy.Config = object{keyStatsdURL: "unix://"}
		}, "proxy.config.envoy_statsd_url"},
		"variable is wrong": {func(p *Params) {
			p.Env = map[string]string{"TARGET": "10.0.0.1:8125"}
			p.Proxy.Config = object{keyStatsdURL: "$TARGET"}
		}, "proxy.config.envoy_statsd_url"},
		"tags are an object": {func(p *Params) {
			p.Proxy.Config = object{keyStatsTags: object{"a": "b"}}
		}, "proxy.config.envoy_stats_tags[0]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sidecar("web", nil)
			tc.change(&p)
			_, err := Generate(p)
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("error %v, want an InvalidError", err)
			}
			if got := invalid.Violations; len(got) != 1 || got[0].Path != tc.want {
				t.Errorf("violations %v, want one at %s", got, tc.want)
			}
		})
	}
}

func TestWeakText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   any
		want string
		ok   bool
	}{
		{nil, "", true},
		{"a", "a", true},
		{true, "1", true},
		{false, "0", true},
		{1e21, "1000000000000000000000", true},
		{0.25, "0.25", true},
		{7, "7", true},
		{json.Number("8.0"), "8.0", true},
		{[]any{}, "", false},
		{object{}, "", false},
	}
	for _, tc := range tests {
		if got, ok := weakText(tc.in); got != tc.want || ok != tc.ok {
			t.Errorf("weakText(%v) = %q, %v, want %q, %v", tc.in, got, ok, tc.want, tc.ok)
		}
	}
}

func FuzzGenerate(f *testing.F) {
	for _, config := range configured() {
		seed, err := json.Marshal(config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte(`{"envoy_extra_static_clusters_json":"[[[{}]]]","ENVOY_STATS_TAGS":[null]}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		var m map[string]any
		if json.Unmarshal(config, &m) != nil {
			return
		}
		p := sidecar("web", m)
		p.Token, p.Env = "secret", map[string]string{"HOST_IP": "10.0.0.1"}
		doc, err := Generate(p)
		if err != nil {
			if invalid := (*InvalidError)(nil); !errors.As(err, &invalid) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		again, err := Generate(p)
		if err != nil || !bytes.Equal(doc, again) {
			t.Fatalf("second result differs: %v", err)
		}
		checkShape(t, doc)
	})
}

// checkShape checks what must hold whatever the configuration says.
func checkShape(t *testing.T, doc []byte) {
	t.Helper()
	var got struct {
		Node   struct{ ID string }
		Static struct {
			Clusters []struct{ Name string }
		} `json:"static_resources"`
		Dynamic struct {
			ADS struct {
				GRPC struct {
					Meta []struct{ Key, Value string } `json:"initial_metadata"`
				} `json:"grpc_services"`
			} `json:"ads_config"`
		} `json:"dynamic_resources"`
	}
	// A fragment may hold fields of any type: those do not fit, but only those.
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(doc, &got); err != nil && !errors.As(err, &wrongType) {
		t.Fatalf("not JSON: %v\n%s", err, doc)
	}
	meta := got.Dynamic.ADS.GRPC.Meta
	if len(meta) != 1 {
		t.Fatalf("initial metadata %+v, want one\n%s", meta, doc)
	}
	frame := []string{got.Node.ID, got.Static.Clusters[0].Name, meta[0].Key, meta[0].Value}
	if diff := cmp.Diff([]string{"web-proxy", agentName, "x-consul-token", "secret"}, frame); diff != "" {
		t.Fatalf("the frame is damaged (-want +got):\n%s\n%s", diff, doc)
	}
}
