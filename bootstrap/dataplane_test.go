package bootstrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	dataplaneNode  = "arn:aws:ecs:us-east-1:123456789012:cluster/test"
	dataplaneToken = "5b1d9c5e-0000-4000-8000-00000000000a"
)

func TestDataplaneFile(t *testing.T) {
	t.Parallel()
	const (
		proxy = `"proxy":{"nodeName":"arn:aws:ecs:us-east-1:123456789012:cluster/test","id":"web-abc-sidecar-proxy","namespace":"","partition":""},` +
			`"xdsServer":{"bindAddress":"127.0.0.1"},`
		rest = proxy + `"envoy":{"readyBindAddress":"127.0.0.1","readyBindPort":22000},"logging":{"logLevel":"INFO"}}`
	)
	tests := map[string]struct {
		change func(*Dataplane)
		want   string
	}{
		"no TLS, no ACLs": {func(*Dataplane) {},
			`{"consul":{"addresses":"consul.internal","grpcPort":8502,"serverWatchDisabled":false,` +
				`"tls":{"disabled":true}},` + rest},
		"TLS": {func(d *Dataplane) {
			d.Servers.GRPC.Port, d.TLS = 8503,
				&DataplaneTLS{CAFile: "/consul/consul-grpc-ca-cert.pem", ServerName: "consul.internal"}
		}, `{"consul":{"addresses":"consul.internal","grpcPort":8503,"serverWatchDisabled":false,` +
			`"tls":{"disabled":false,"caCertsPath":"/consul/consul-grpc-ca-cert.pem","serverName":"consul.internal","tlsServerName":"consul.internal"}},` + rest},
		"token": {func(d *Dataplane) { d.Token = dataplaneToken },
			`{"consul":{"addresses":"consul.internal","grpcPort":8502,"serverWatchDisabled":false,` +
				`"tls":{"disabled":true},"credentials":{"type":"static","static":{"token":"5b1d9c5e-0000-4000-8000-00000000000a"}}},` + rest},
		"TLS and token": {func(d *Dataplane) {
			d.TLS, d.Token = &DataplaneTLS{ServerName: "consul.internal"}, dataplaneToken
		}, `{"consul":{"addresses":"consul.internal","grpcPort":8502,"serverWatchDisabled":false,` +
			`"tls":{"disabled":false,"serverName":"consul.internal","tlsServerName":"consul.internal"},` +
			`"credentials":{"type":"static","static":{"token":"5b1d9c5e-0000-4000-8000-00000000000a"}}},` + rest},
		"other ready port and DNS": {func(d *Dataplane) {
			d.ReadyPort, d.DNSPort, d.LogLevel = 23000, 8600, "DEBUG"
		}, `{"consul":{"addresses":"consul.internal","grpcPort":8502,"serverWatchDisabled":false,"tls":{"disabled":true}},` + proxy +
			`"envoy":{"readyBindAddress":"127.0.0.1","readyBindPort":23000},"logging":{"logLevel":"DEBUG"},` +
			`"dnsServer":{"bindAddress":"127.0.0.1","bindPort":8600}}`},
		"command as hosts": {func(d *Dataplane) {
			d.Servers.Hosts, d.Servers.SkipServerWatch = "exec=discover -q addrs provider=aws tag_key=a tag_value=b",
				true
			d.TLS = &DataplaneTLS{CAFile: "/ca.pem", ServerName: "server.dc1.consul"}
		}, `{"consul":{"addresses":"exec=discover -q addrs provider=aws tag_key=a ` +
			`tag_value=b","grpcPort":8502,"serverWatchDisabled":true,` +
			`"tls":{"disabled":false,"caCertsPath":"/ca.pem","serverName":"server.dc1.consul","tlsServerName":"server.dc1.consul"}},` + rest},
		"gateway in a namespace": {func(d *Dataplane) {
			d.ProxyID, d.Namespace, d.Partition = "edge-abc", "team-a", "part-1"
		}, `{"consul":{"addresses":"consul.internal","grpcPort":8502,"serverWatchDisabled":false,"tls":{"disabled":true}},` +
			`"proxy":{"nodeName":"arn:aws:ecs:us-east-1:123456789012:cluster/test","id":"edge-abc","namespace":"team-a","partition":"part-1"},` +
			`"xdsServer":{"bindAddress":"127.0.0.1"},"envoy":{"readyBindAddress":"127.0.0.1","readyBindPort":22000},"logging":{"logLevel":"INFO"}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Dataplane{
				Servers:  config.ConsulServers{Hosts: "consul.internal", GRPC: config.ServerGRPC{Port: 8502}},
				NodeName: dataplaneNode, ProxyID: "web-abc-sidecar-proxy",
				ReadyPort: 22000, LogLevel: "INFO",
			}
			tc.change(&d)
			got, err := d.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(testkit.SortedJSON(t, tc.want), string(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}
