package bootstrap_test

import (
	"encoding/json"
	"fmt"

	"github.com/meshtask/consul-ecs/bootstrap"
)

func ExampleGenerate() {
	doc, err := bootstrap.Generate(bootstrap.Params{
		Proxy: bootstrap.Proxy{
			Kind:        bootstrap.ConnectProxy,
			Service:     "web-sidecar-proxy",
			Destination: "web",
			Datacenter:  "dc1",
			Config:      map[string]any{"envoy_prometheus_bind_addr": "0.0.0.0:9102"},
		},
		ProxyID: "web-0123456789abcdef-sidecar-proxy",
		GRPC:    bootstrap.GRPC{Address: "localhost:8502"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var out struct {
		Node struct{ ID, Cluster string }
	}
	if err := json.Unmarshal(doc, &out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Node.Cluster, out.Node.ID)
	// Output: web web-0123456789abcdef-sidecar-proxy
}

func ExampleInvalidError() {
	_, err := bootstrap.Generate(bootstrap.Params{
		Proxy: bootstrap.Proxy{
			Kind: bootstrap.MeshGateway, Service: "edge",
			Config: map[string]any{"envoy_statsd_url": "udp://statsd:8125", "envoy_tracing_json": "{"},
		},
		ProxyID: "edge-0123456789abcdef",
		GRPC:    bootstrap.GRPC{Address: "127.0.0.1:8502"},
	})
	fmt.Println(err)
	// Output:
	// generate Envoy bootstrap: invalid values
	//   proxy.config.envoy_statsd_url: must be udp://<IP address>:<port>, not "udp://statsd:8125"
	//   proxy.config.envoy_tracing_json: must be a JSON object in a string: unexpected end of JSON input (byte 1)
}
