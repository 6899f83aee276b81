package bootstrap

import "slices"

// bootCase is one registration and the values a bootstrap is made of. params
// is written out in full; the comparison test proves that the real agent
// answers exactly params.Proxy.
type bootCase struct {
	name   string
	params Params
	// local is the registration's own configuration where proxy-defaults add
	// to it; nil: params.Proxy.Config.
	local object
	// defaults is the Config of proxy-defaults.
	defaults object
	// args are further flags of Consul's command.
	args []string
	// golden keeps the whole result in testdata.
	golden bool
}

func sidecar(id string, config object) Params {
	return Params{
		Proxy: Proxy{
			Kind: ConnectProxy, Service: id + "-sidecar-proxy", Destination: id,
			Datacenter: "dc1", Config: config,
		},
		ProxyID: id + "-proxy",
		GRPC:    GRPC{Address: "localhost:8502"},
	}
}

func gateway(id string, config object) Params {
	p := sidecar(id, config)
	p.Proxy.Kind, p.Proxy.Service, p.Proxy.Destination = MeshGateway, id, ""
	return p
}

// configured returns the options that consist of proxy.config alone.
func configured() map[string]object {
	const listener = `{"name":"extra","address":{"socket_address":{"address":"127.0.0.1","port_value":9901}},` +
		`"filter_chains":[{"filters":[{"name":"envoy.filters.network.tcp_proxy","typed_config":{` +
		`"@type":"type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",` +
		`"stat_prefix":"extra","cluster":"zipkin"}}]}]}`
	const cluster = `{"name":"zipkin","connect_timeout":"1s","type":"STATIC"}`
	const ownAdmin = `{"name":"self_admin","connect_timeout":"2s","type":"STATIC"}`
	const sink = `{"name":"envoy.stat_sinks.statsd","typed_config":{` +
		`"@type":"type.googleapis.com/envoy.config.metrics.v3.StatsdSink","tcp_cluster_name":"local_agent"}}`
	const tracing = `{"http":{"name":"envoy.tracers.zipkin","typedConfig":{` +
		`"@type":"type.googleapis.com/envoy.config.trace.v3.ZipkinConfig","collector_cluster":"zipkin",` +
		`"collector_endpoint_version":"HTTP_JSON","collector_endpoint":"/api/v2/spans"}}}`
	return map[string]object{
		"plain":           nil,
		"prometheus":      {"envoy_prometheus_bind_addr": "0.0.0.0:9102"},
		"prometheus-ipv6": {"envoy_prometheus_bind_addr": "[::]:9102"},
		"stats-bind":      {"envoy_stats_bind_addr": "127.0.0.1:9103"},
		"both-metrics":    {"envoy_prometheus_bind_addr": "0.0.0.0:9102", "envoy_stats_bind_addr": "0.0.0.0:9103"},
		"own-admin-cluster": {"envoy_prometheus_bind_addr": "0.0.0.0:9102",
			"envoy_extra_static_clusters_json": ownAdmin},
		"ready-is-not-a-key":  {"envoy_ready_bind_addr": "0.0.0.0:9104", "envoy_ready_bind_port": 9104.0},
		"statsd":              {"envoy_statsd_url": "udp://127.0.0.1:8125"},
		"statsd-ipv6":         {"envoy_statsd_url": "udp://[::1]:8125"},
		"statsd-variable":     {"envoy_statsd_url": "$STATSD_TARGET"},
		"statsd-host-ip":      {"envoy_statsd_url": "udp://${HOST_IP}:8125"},
		"statsd-host-ip-bare": {"envoy_statsd_url": "udp://$HOST_IP:8125"},
		"dogstatsd":           {"envoy_dogstatsd_url": "udp://127.0.0.1:8125"},
		"dogstatsd-socket":    {"envoy_dogstatsd_url": "unix:///var/run/dog.sock"},
		"dogstatsd-other-var": {"envoy_dogstatsd_url": "unix:///var/run/$OTHER/dog.sock"},
		"stats-tags":          {"envoy_stats_tags": []any{"Env=prod", "canary", "a=b=c", "local_cluster=mine"}},
		"one-stats-tag":       {"envoy_stats_tags": "env=prod"},
		"weak-types":          {"envoy_stats_tags": []any{1.5, true}},
		"other-letter-case":   {"Envoy_Stats_Tags": []any{"env=prod", "b=c"}},
		"extra-sinks": {"envoy_statsd_url": "udp://127.0.0.1:8125", "envoy_extra_stats_sinks_json": sink + "," +
			sink},
		"unknown-sinks-key": {"envoy_stats_sinks_json": sink},
		"flush-interval":    {"envoy_stats_flush_interval": "2.5s"},
		"stats-config": {
			"envoy_stats_config_json": `{"stats_tags":[{"tag_name":"x","regex":"<&>(a)"}]}`,
			"envoy_stats_tags":        []any{"a=b", "c"},
		},
		"tracing":      {"envoy_tracing_json": tracing, "envoy_extra_static_clusters_json": cluster},
		"two-clusters": {"envoy_extra_static_clusters_json": cluster + ",\n" + ownAdmin},
		"listener":     {"envoy_extra_static_listeners_json": listener, "envoy_extra_static_clusters_json": cluster},
		"telemetry":    {"envoy_telemetry_collector_bind_socket_dir": "/tmp/consul"},
		"telemetry-tuned": {
			"envoy_telemetry_collector_bind_socket_dir": "/tmp/consul", "envoy_dogstatsd_url": "udp://127.0.0.1:8125",
		},
		"telemetry-interval": {
			"envoy_telemetry_collector_bind_socket_dir": "/tmp/consul", "envoy_stats_flush_interval": "10s",
		},
		"runtime-keys-only": {"protocol": "http", "local_connect_timeout_ms": 1000.0,
			"nested": object{"a": []any{"b", "c"}}},
		"everything": {
			"envoy_prometheus_bind_addr": "0.0.0.0:9102", "envoy_stats_bind_addr": "0.0.0.0:9103",
			"envoy_statsd_url": "udp://127.0.0.1:8125", "envoy_dogstatsd_url": "unix:///var/run/dog.sock",
			"envoy_stats_tags": []any{"env=prod", "canary"}, "envoy_extra_stats_sinks_json": sink,
			"envoy_stats_flush_interval": "10s", "envoy_tracing_json": tracing,
			"envoy_extra_static_clusters_json": cluster, "envoy_extra_static_listeners_json": listener,
			"envoy_telemetry_collector_bind_socket_dir": "/tmp/consul",
		},
	}
}

func cases() []bootCase {
	var out []bootCase
	for name, config := range configured() {
		c := bootCase{name: name, params: sidecar("web-"+name, config)}
		c.params.Env = map[string]string{"STATSD_TARGET": "udp://127.0.0.9:8125", "HOST_IP": "127.0.0.8", "OTHER": "no"}
		c.golden = name == "plain" || name == "everything"
		out = append(out, c)
	}
	out = append(out, flagCases()...)
	out = append(out, defaultsCases()...)
	slices.SortFunc(out, func(a, b bootCase) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return out
}

// flagCases differ in what the command takes from its flags.
func flagCases() []bootCase {
	token := bootCase{name: "token", params: sidecar("web-token", nil)}
	token.params.Token = "5b1d9c5e-0000-4000-8000-00000000000a"
	token.args = []string{"-token", token.params.Token}

	tls := bootCase{name: "tls", params: sidecar("web-tls", nil)}
	tls.params.GRPC = GRPC{Address: "https://127.0.0.1:8503", CAPEM: caPEM}
	tls.args = []string{"-grpc-addr", "https://127.0.0.1:8503", "-grpc-ca-file", caFile}

	unused := bootCase{name: "ca-without-tls", params: sidecar("web-ca-without-tls", nil)}
	unused.params.GRPC = GRPC{Address: "http://127.0.0.1:8502", CAPEM: caPEM}
	unused.args = []string{"-grpc-addr", "http://127.0.0.1:8502", "-grpc-ca-file", caFile}

	unix := bootCase{name: "unix", params: sidecar("web-unix", nil)}
	unix.params.GRPC.Address = "unix:///tmp/consul/grpc.sock"
	unix.args = []string{"-grpc-addr", "unix:///tmp/consul/grpc.sock"}

	unixTLS := bootCase{name: "unix-tls", params: sidecar("web-unix-tls", nil)}
	unixTLS.params.GRPC = GRPC{Address: "unix:///tmp/consul/grpc.sock", CAPEM: caPEM}
	unixTLS.args = []string{"-grpc-addr", "unix:///tmp/consul/grpc.sock", "-grpc-ca-file", caFile}

	admin := bootCase{name: "admin-bind",
		params: sidecar("web-admin-bind", object{"envoy_stats_bind_addr": "0.0.0.0:9103"})}
	admin.params.AdminBind = "127.0.0.2:19001"
	admin.args = []string{"-admin-bind", "127.0.0.2:19001"}

	adminName := bootCase{name: "admin-localhost", params: sidecar("web-admin-localhost", nil)}
	adminName.params.AdminBind = "localhost:19002"
	adminName.args = []string{"-admin-bind", "localhost:19002"}

	ready := bootCase{name: "ready-bind", params: sidecar("web-ready-bind", nil)}
	ready.params.ReadyBind = "127.0.0.1:22000"
	ready.args = []string{"-envoy-ready-bind-address", "127.0.0.1", "-envoy-ready-bind-port", "22000"}

	gw := bootCase{name: "mesh-gateway",
		params: gateway("edge-1", object{"envoy_prometheus_bind_addr": "0.0.0.0:9102"}), golden: true}
	return []bootCase{token, tls, unused, unix, unixTLS, admin, adminName, ready, gw}
}

// defaultsCases returns settings of the whole mesh.
func defaultsCases() []bootCase {
	merged := bootCase{name: "defaults-merged", params: sidecar("web-defaults-merged", object{
		"envoy_stats_tags": "from=defaults", "envoy_stats_flush_interval": "5s", "protocol": "http",
	})}
	merged.defaults = object{"envoy_stats_tags": []any{"from=defaults"}, "envoy_stats_flush_interval": "9s",
		"protocol": "http"}
	merged.local = object{"envoy_stats_flush_interval": "5s"}

	gw := bootCase{name: "defaults-gateway",
		params: gateway("edge-defaults", object{"envoy_statsd_url": "udp://127.0.0.1:8125"})}
	gw.defaults, gw.local = object{"envoy_statsd_url": "udp://127.0.0.1:8125"}, object{}
	gw.params.Proxy.AccessLogs = &AccessLogs{Enabled: true}

	out := []bootCase{merged, gw}
	for name, logs := range map[string]AccessLogs{
		"logs-default":  {Enabled: true},
		"logs-stdout":   {Enabled: true, Type: "stdout", JSONFormat: `{"start":"%START_TIME%","deep":{"n":1}}`},
		"logs-stderr":   {Enabled: true, Type: "stderr", TextFormat: "%START_TIME% <x>"},
		"logs-newline":  {Enabled: true, TextFormat: "%START_TIME%\n"},
		"logs-file":     {Enabled: true, Type: "file", Path: "/dev/stdout", TextFormat: "%START_TIME%"},
		"logs-disabled": {Type: "stderr"},
	} {
		c := bootCase{name: name, params: sidecar("web-"+name, nil)}
		c.params.Proxy.AccessLogs = &logs
		out = append(out, c)
	}
	return out
}
