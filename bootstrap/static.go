package bootstrap

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"path"
)

const (
	adminName     = "self_admin"
	telemetryName = "consul_telemetry_collector_loopback"
	httpOptions   = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	typeURL       = "type.googleapis.com/"
)

func (in inputs) staticResources() object {
	out := object{"clusters": in.clusters()}
	if listeners := in.listeners(); len(listeners) > 0 {
		out["listeners"] = listeners
	}
	return out
}

func (in inputs) clusters() list {
	out := list{in.agentCluster()}
	out = appendRaw(out, in.opts.extraClusters)
	proxied := in.opts.prometheus != nil || in.opts.stats != nil || in.ready != nil
	if proxied && !hasCluster(in.opts.extraClusters, adminName) {
		out = append(out, cluster(adminName, "http_protocol_options", in.admin.address(), object{
			"ignore_health_on_host_removal": false,
			"connect_timeout":               "5s",
		}))
	}
	if in.opts.telemetryCollectorDir != "" {
		out = append(out, cluster(telemetryName, "http2_protocol_options", pipe(in.telemetrySocket()), object{}))
	}
	return out
}

// agentCluster returns the xDS server. Neither a server name nor a host name check: an agent's certificate
// names its node, and Consul's own bootstrap trusts the CA alone.
func (in inputs) agentCluster() object {
	more := object{"ignore_health_on_host_removal": false, "connect_timeout": "1s"}
	if in.agent.tls {
		more["transport_socket"] = object{
			"name": "tls",
			"typed_config": object{
				"@type": typeURL + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": object{
					"validation_context": object{"trusted_ca": object{"inline_string": in.params.GRPC.CAPEM}},
				},
			},
		}
	}
	return cluster(agentName, "http2_protocol_options", in.agent.address(), more)
}

// cluster returns one with a static endpoint that speaks the given HTTP version; more fields are added to
// those of every cluster.
func cluster(name, protocol string, address, more object) object {
	more["name"] = name
	more["type"] = "STATIC"
	more["typed_extension_protocol_options"] = object{httpOptions: object{
		"@type":                typeURL + httpOptions,
		"explicit_http_config": object{protocol: object{}},
	}}
	more["loadAssignment"] = object{
		"clusterName": name,
		"endpoints": list{object{
			"lbEndpoints": list{object{"endpoint": object{"address": address}}},
		}},
	}
	return more
}

// telemetrySocket returns where Consul will make Envoy listen for its own metrics: the name is a hash because
// a Unix socket's path may have 104 bytes only.
func (in inputs) telemetrySocket() string {
	sum := sha1.Sum([]byte(in.namespace + "_" + in.params.ProxyID))
	return path.Join(in.opts.telemetryCollectorDir, base64.RawURLEncoding.EncodeToString(sum[:])+".sock")
}

func (in inputs) listeners() list {
	out := appendRaw(nil, in.opts.extraListeners)
	if s := in.opts.prometheus; s != nil {
		out = append(out, adminListener("envoy_prometheus_metrics", *s, object{"path": "/metrics"},
			"/stats/prometheus"))
	}
	if s := in.opts.stats; s != nil {
		out = append(out, adminListener("envoy_metrics", *s, object{"prefix": "/stats"}, "/stats"))
	}
	if in.ready != nil {
		out = append(out, adminListener("envoy_ready", *in.ready, object{"path": "/ready"}, "/ready"))
	}
	return out
}

// adminListener shows one path of the admin interface to the network and
// answers 404 to everything else.
func adminListener(name string, bind socket, match object, rewrite string) object {
	routes := list{
		object{"match": match, "route": object{"cluster": adminName, "prefix_rewrite": rewrite}},
		object{"match": object{"prefix": "/"}, "direct_response": object{"status": 404}},
	}
	hcm := object{
		"@type":       typeURL + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": name,
		"codec_type":  "HTTP1",
		"route_config": object{
			"name":          "self_admin_route",
			"virtual_hosts": list{object{"name": "self_admin", "domains": list{"*"}, "routes": routes}},
		},
		"http_filters": list{object{
			"name":        "envoy.filters.http.router",
			"typedConfig": object{"@type": typeURL + "envoy.extensions.filters.http.router.v3.Router"},
		}},
	}
	filter := object{"name": "envoy.filters.network.http_connection_manager", "typedConfig": hcm}
	return object{
		"name":          name + "_listener",
		"address":       bind.address(),
		"filter_chains": list{object{"filters": list{filter}}},
	}
}

func appendRaw(out list, msgs []json.RawMessage) list {
	for _, m := range msgs {
		out = append(out, m)
	}
	return out
}

func hasCluster(clusters []json.RawMessage, name string) bool {
	for _, c := range clusters {
		var named struct{ Name string }
		if json.Unmarshal(c, &named) == nil && named.Name == name {
			return true
		}
	}
	return false
}
