package meshinit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// What consul-dataplane starts from, whole, for configurations of version 0.10.
func TestConfigurationOfConsulDataplaneGolden(t *testing.T) {
	t.Parallel()
	const (
		consul  = `{"consul":{"addresses":"consul.example","grpcPort":8503,"serverWatchDisabled":false,`
		secure  = `"tls":{"disabled":false,"serverName":"consul.example","tlsServerName":"consul.example"}},`
		service = `"proxy":{"nodeName":"arn:aws:ecs:us-west-2:123456789012:cluster/prod",` +
			`"id":"web-abc-sidecar-proxy","namespace":"","partition":""},`
		rest = `"xdsServer":{"bindAddress":"127.0.0.1"},"envoy":{"readyBindAddress":"127.0.0.1",` +
			`"readyBindPort":22000},"logging":{"logLevel":"INFO"}}`
		noProxy = `,"service":{"name":"web","port":9090},"transparentProxy":{"enabled":false}}`
	)
	for name, c := range map[string]struct{ document, caPEM, token, want string }{
		"nothing but the servers": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"}` +
			noProxy,
			want: consul + secure + service + rest},
		"login": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},` +
			`"consulLogin":{"enabled":true}` + noProxy, token: "the-secret",
			want: consul + strings.TrimSuffix(secure, "},") +
				`,"credentials":{"type":"static","static":{"token":"the-secret"}}},` + service + rest},
		"plaintext": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"10.0.0.1",` +
			`"defaults":{"tls":false},"grpc":{"port":8502}}` + noProxy,
			want: `{"consul":{"addresses":"10.0.0.1","grpcPort":8502,"serverWatchDisabled":false,` +
				`"tls":{"disabled":true}},` + service + rest},
		"TLS for gRPC alone, with a file": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"10.0.0.1",
			"defaults":{"tls":false,"caCertFile":"/ca.pem","tlsServerName":"default"},"grpc":{"tls":true,"caCertFile":"/grpc.pem","tlsServerName":"server.dc1.consul"}}` + noProxy,
			want: `{"consul":{"addresses":"10.0.0.1","grpcPort":8503,"serverWatchDisabled":false,` +
				`"tls":{"disabled":false,"caCertsPath":"/grpc.pem","serverName":"server.dc1.consul",` +
				`"tlsServerName":"server.dc1.consul"}},` + service + rest},
		"CA certificates of the environment": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example","defaults":{"caCertFile":"/ca.pem"}}` + noProxy, caPEM: "PEM",
			want: consul +
				strings.Replace(secure, `false,`, `false,"caCertsPath":"/consul/consul-grpc-ca-cert.pem",`, 1) +
				service + rest},
		"servers of a command, not watched": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"exec=discover -q addrs","skipServerWatch":true,"defaults":{"tlsServerName":"server.dc1.consul"}}` + noProxy,
			want: `{"consul":{"addresses":"exec=discover -q addrs","grpcPort":8503,"serverWatchDisabled":true,` +
				`"tls":{"disabled":false,"serverName":"server.dc1.consul","tlsServerName":"server.dc1.consul"}},` +
				service + rest},
		"servers at an address of IPv6": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"fd00::1",` +
			`"defaults":{"tls":false}}` + noProxy,
			want: `{"consul":{"addresses":"fd00::1","grpcPort":8503,"serverWatchDisabled":false,` +
				`"tls":{"disabled":true}},` + service + rest},
		"namespace and partition": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},` +
			`"service":{"name":"web","port":1,"namespace":"team","partition":"part"},` +
			`"transparentProxy":{"enabled":false}}`,
			want: consul + secure +
				strings.Replace(service, `"namespace":"","partition":""`, `"namespace":"team","partition":"part"`, 1) +
				rest},
		"log level, ready port and DNS": {document: `{"bootstrapDir":"/consul","logLevel":"TRACE","consulServers":{"hosts":"consul.example"},"service":{"name":"web","port":1},"proxy":{"healthCheckPort":22010},
			"transparentProxy":{"consulDNS":{"enabled":true}}}`,
			want: consul + secure + service +
				`"xdsServer":{"bindAddress":"127.0.0.1"},"envoy":{"readyBindAddress":"127.0.0.1",` +
				`"readyBindPort":22010},"logging":{"logLevel":"TRACE"},` +
				`"dnsServer":{"bindAddress":"127.0.0.1","bindPort":8600}}`},
		"mesh gateway": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},` +
			`"gateway":{"kind":"mesh-gateway","name":"edge","partition":"part","healthCheckPort":22010}}`,
			want: consul + secure +
				`"proxy":{"nodeName":"arn:aws:ecs:us-west-2:123456789012:cluster/prod","id":"edge-abc",` +
				`"namespace":"","partition":"part"},` +
				strings.Replace(rest, "22000", "22010", 1)},
		"API gateway, which has no redirection": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},"gateway":{"kind":"api-gateway","name":"edge"},"transparentProxy":{"enabled":true,"consulDNS":{"enabled":true}}}`,
			want: consul + secure + strings.Replace(service, "web-abc-sidecar-proxy", "edge-abc", 1) + rest},
		"terminating gateway": {document: `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},` +
			`"gateway":{"kind":"terminating-gateway"}}`,
			want: consul + secure + strings.Replace(service, "web-abc-sidecar-proxy", "web-abc", 1) + rest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _, err := config.Parse([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			servers, err := consulutil.NewServers(
				consulutil.ServersOptions{Config: *cfg.ConsulServers, GRPCCAPEM: c.caPEM, Log: hclog.NewNullLogger()})
			if err != nil {
				t.Fatal(err)
			}
			var task workload.Task
			if err := json.Unmarshal([]byte(dataplaneTask), &task); err != nil {
				t.Fatal(err)
			}
			w, err := workload.New(cfg, task, "")
			if err != nil {
				t.Fatal(err)
			}
			files, err := meshinit.ServersProxy{Config: cfg, GRPC: servers.GRPCTLS()}.Files(t.Context(), w,
				bootstrap.Proxy{}, consulutil.Token{Secret: c.token})
			if err != nil {
				t.Fatal(err)
			}
			file := files[len(files)-1]
			if diff := cmp.Diff(testkit.SortedJSON(t, c.want),
				string(file.Data)); file.Name != "consul-dataplane.json" || diff != "" {
				t.Errorf("%s (-want +got):\n%s", file.Name, diff)
			}
			if file.Secret != (c.token != "") {
				t.Errorf("secret = %v with token %q", file.Secret, c.token)
			}
		})
	}
}

// The relay of an Envoy alone answers DNS where consul-dataplane would.
func TestRelayAnswersDNSWhereTheTaskIsRedirected(t *testing.T) {
	t.Parallel()
	const service = `{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},"proxy":{"mode":"direct"},` +
		`"service":{"name":"web","port":1,"namespace":"team","partition":"part"},"transparentProxy":`
	for document, want := range map[string]*bootstrap.RelayDNS{
		service + `{"consulDNS":{"enabled":true}}}`:                 {Port: 8600, Namespace: "team", Partition: "part"},
		service + `{"enabled":false,"consulDNS":{"enabled":true}}}`: nil,
		service + `{}}`: nil,
		`{"bootstrapDir":"/consul","consulServers":{"hosts":"consul.example"},"gateway":{"kind":"api-gateway",` +
			`"name":"edge","proxy":{"mode":"direct"}},` +
			`"transparentProxy":{"consulDNS":{"enabled":true}}}`: nil,
	} {
		cfg, _, err := config.Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var task workload.Task
		if err := json.Unmarshal([]byte(dataplaneTask), &task); err != nil {
			t.Fatal(err)
		}
		w, err := workload.New(cfg, task, "")
		if err != nil {
			t.Fatal(err)
		}
		files, err := meshinit.ServersProxy{Config: cfg}.Files(t.Context(), w,
			bootstrap.Proxy{Kind: "connect-proxy", Service: "web-sidecar-proxy", Destination: "web"},
			consulutil.Token{})
		if err != nil {
			t.Fatal(err)
		}
		relay, err := bootstrap.ParseRelay(files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, relay.DNS); diff != "" {
			t.Errorf("%s (-want +got):\n%s", document, diff)
		}
	}
}

const dataplaneTask = `{"Cluster":"prod","TaskARN":"arn:aws:ecs:us-west-2:123456789012:task/prod/abc","Family":"web",
	"Containers":[{"Name":"app","Type":"NORMAL","Networks":[{"IPv4Addresses":["10.0.0.9"]}]}]}`
