package bootstrap

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// relayed returns the proxies of tasks without an agent, by name.
func relayed() map[string]Params {
	out := map[string]Params{
		"agentless":             sidecar("web-agentless", object{"envoy_prometheus_bind_addr": "0.0.0.0:9102"}),
		"agentless-terminating": gateway("out-agentless", nil),
		"agentless-api":         gateway("in-agentless", nil),
	}
	for name, p := range out {
		switch name {
		case "agentless-terminating":
			p.Proxy.Kind = TerminatingGateway
		case "agentless-api":
			p.Proxy.Kind = APIGateway
		}
		p.Relay = true
		p.NodeName, p.ReadyBind = "arn:aws:ecs:us-east-1:123456789012:cluster/test", "127.0.0.1:22000"
		p.Token = "5b1d9c5e-0000-4000-8000-00000000000a"
		out[name] = p
	}
	return out
}

// Consul's command needs no agent's registration either, given the node. How Envoy
// opens its stream is the relay's and so ours.
func TestAgentlessBootstrapDiffersFromConsulsOnlyInTheStream(t *testing.T) {
	c := plain.Require(t)
	flags := map[string][]string{TerminatingGateway: {"-gateway", "terminating"}, APIGateway: {"-gateway", "api"}}
	for name, p := range relayed() {
		t.Run(name, func(t *testing.T) {
			call(t, c, http.MethodPut, "/v1/catalog/register", object{
				"Node": p.NodeName, "Address": "10.0.0.1", "SkipNodeUpdate": true,
				"Service": object{
					"ID": p.ProxyID, "Service": p.Proxy.Service, "Kind": p.Proxy.Kind, "Port": 20000,
					"Proxy": object{"DestinationServiceName": p.Proxy.Destination, "Config": p.Proxy.Config},
				},
			}, nil)
			args := append(flags[p.Proxy.Kind], "-node-name", p.NodeName, "-proxy-id", p.ProxyID, "-grpc-addr",
				"localhost:8502",
				"-envoy-ready-bind-address", "127.0.0.1", "-envoy-ready-bind-port", "22000")
			text, err := command(t, c.HTTPAddr, "", nil, args...)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := Generate(p)
			if err != nil {
				t.Fatal(err)
			}
			theirs, ours := tree(t, text), tree(t, string(doc))
			takeStream(theirs)
			want := object{"envoy_grpc": object{
				"cluster_name": "local_agent",
				"retry_policy": object{"retry_back_off": object{"base_interval": "0.25s", "max_interval": "5s"}},
			}}
			if diff := cmp.Diff(want, takeStream(ours)); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("bootstrap differs (-consul +ours):\n%s", diff)
			}
			if err := validate(t, string(doc)); err != nil {
				t.Errorf("Envoy refuses it: %v", err)
			}
		})
	}
}

// takeStream removes how Envoy opens its stream from a bootstrap.
func takeStream(doc any) any {
	ads := doc.(object)["dynamic_resources"].(object)["ads_config"].(object)
	defer delete(ads, "grpc_services")
	return ads["grpc_services"]
}
