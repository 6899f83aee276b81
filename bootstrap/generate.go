package bootstrap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// object and list are the JSON tree under construction.
type (
	object = map[string]any
	list   = []any
)

// agentName is the cluster of the xDS server. Consul gives it this name,
// and refers to it by this name in what it sends later.
const agentName = "local_agent"

// Generate returns the bootstrap as indented JSON with sorted keys, the same
// for the same Params. Its error is an *InvalidError that lists every wrong
// value.
func Generate(p Params) ([]byte, error) {
	var bad InvalidError
	in := resolve(p, &bad)
	if err := bad.err(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // regular expressions and log formats stay readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(in.document()); err != nil {
		return nil, fmt.Errorf("encode Envoy bootstrap: %w", err)
	}
	return buf.Bytes(), nil
}

// inputs are Params, and what their texts and the defaults come to.
type inputs struct {
	params               Params
	cluster, source      string
	namespace, partition string
	agent                endpoint
	admin                socket
	ready                *socket
	accessLog            object
	opts                 options
}

func resolve(p Params, bad *InvalidError) inputs {
	in := inputs{
		params:    p,
		namespace: cmp.Or(p.Proxy.Namespace, "default"),
		partition: cmp.Or(p.Proxy.Partition, "default"),
	}
	if p.ProxyID == "" {
		bad.add("proxy ID", "must not be empty")
	}
	switch kind := p.Proxy.Kind; {
	case kind == ConnectProxy:
		in.cluster, in.source = p.Proxy.Destination, p.Proxy.Destination
		if p.Proxy.Destination == "" {
			bad.add("proxy.DestinationServiceName", "must not be empty for a %s", ConnectProxy)
		}
	case IsGateway(kind):
		// The kind, not the name: the command does so under "-gateway mesh",
		// and dashboards group gateways by it.
		in.cluster, in.source = kind, p.Proxy.Service
	default:
		bad.add("kind", "must be %s, %s, %s or %s, not %q", ConnectProxy, MeshGateway, TerminatingGateway, APIGateway,
			kind)
	}
	in.agent = agentEndpoint(p.GRPC, bad)
	var err error
	if in.admin, err = parseSocket(cmp.Or(p.AdminBind, DefaultAdminBind)); err != nil {
		bad.add("admin bind address", "%v", err)
	}
	if p.ReadyBind != "" {
		ready, err := parseSocket(p.ReadyBind)
		if err != nil {
			bad.add("ready bind address", "%v", err)
		}
		in.ready = &ready
	}
	in.accessLog = accessLog(p.Proxy.AccessLogs, bad)
	in.opts = readOptions(p.Proxy.Config, p.Env, bad)
	return in
}

func (in inputs) document() object {
	doc := object{
		"admin":             object{"access_log": list{in.accessLog}, "address": in.admin.address()},
		"node":              in.node(),
		"layered_runtime":   runtimeLayers(),
		"static_resources":  in.staticResources(),
		"dynamic_resources": in.dynamicResources(),
		"stats_config":      in.statsConfig(),
	}
	if sinks := in.statsSinks(); len(sinks) > 0 {
		doc["stats_sinks"] = sinks
	}
	if every := in.flushInterval(); every != "" {
		doc["stats_flush_interval"] = every
	}
	if in.opts.tracing != nil {
		doc["tracing"] = in.opts.tracing
	}
	return doc
}

func (in inputs) node() object {
	metadata := object{"namespace": in.namespace, "partition": in.partition}
	if in.params.NodeName != "" {
		metadata["node_name"] = in.params.NodeName
	}
	return object{"cluster": in.cluster, "id": in.params.ProxyID, "metadata": metadata}
}

// runtimeLayers lifts Envoy's limit for regular expressions: Consul's
// intentions can become long ones.
func runtimeLayers() object {
	return object{"layers": list{object{
		"name":         "base",
		"static_layer": object{"re2.max_program_size.error_level": 1 << 20},
	}}}
}

func (in inputs) dynamicResources() object {
	// No initial timeout: Envoy must wait for Consul, not start without resources.
	fromADS := object{"ads": object{}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"}
	return object{
		"lds_config": fromADS,
		"cds_config": fromADS,
		"ads_config": object{
			"api_type":              "DELTA_GRPC",
			"transport_api_version": "V3",
			"grpc_services":         in.xdsService(),
		},
	}
}

// xdsService configures Envoy's xDS stream. A relay adds the token, and may pass on a
// server's temporary refusal: Envoy must then retry, which reaches another server, sooner
// than after its default maximum of 30 s. Envoy has the setting
// from 1.26 on.
func (in inputs) xdsService() object {
	if !in.params.Relay {
		return object{
			"initial_metadata": list{object{"key": "x-consul-token", "value": in.params.Token}},
			"envoy_grpc":       object{"cluster_name": agentName},
		}
	}
	return object{"envoy_grpc": object{
		"cluster_name": agentName,
		"retry_policy": object{"retry_back_off": object{"base_interval": "0.25s", "max_interval": "5s"}},
	}}
}
