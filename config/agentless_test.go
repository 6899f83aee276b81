package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/meshtask/consul-ecs/config"
)

// agentless wraps fields of a document with consulServers and a service.
func agentless(fields string) string {
	return in(`"consulServers":{"hosts":"h"},"service":{"port":1},` + fields)
}

// agentlessDefaults returns what agentless-basic.json means.
func agentlessDefaults() *config.Config {
	return &config.Config{
		BootstrapDir: "/consul",
		LogLevel:     "INFO",
		ConsulServers: &config.ConsulServers{
			Hosts:    "consul.dc1.example.com",
			Defaults: config.ServerDefaults{TLS: true},
			GRPC:     config.ServerGRPC{Port: 8503},
			HTTP:     config.ServerHTTP{Port: 8501, HTTPS: true},
		},
		ConsulLogin:      config.ConsulLogin{Method: "iam-ecs-service-token", IncludeEntity: true},
		Service:          &config.Service{Port: 9090},
		Proxy:            &config.Proxy{PublicListenerPort: 20000, HealthCheckPort: 22000},
		TransparentProxy: config.TransparentProxy{Enabled: true},
		Controller:       config.Controller{IAMRolePath: "/consul-ecs/"},
	}
}

func TestAgentlessDefaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doc    string
		change func(*config.Config)
	}{
		"basic":           {read(t, "agentless-basic.json"), func(*config.Config) {}},
		"null at the top": {read(t, "agentless-top-nulls.json"), func(*config.Config) {}},
		"null below":      {read(t, "agentless-nested-nulls.json"), func(*config.Config) {}},
		"ports that are 0": {in(`"consulServers":{"hosts":"consul.dc1.example.com","grpc":{"port":0},"http":{"port":0}},"service":{"port":9090},
			"proxy":{"publicListenerPort":0,"healthCheckPort":0}`), func(*config.Config) {}},
		"without a proxy": {in(`"consulServers":{"hosts":"consul.dc1.example.com"},"service":{"port":9090}`),
			func(*config.Config) {}},
		"empty collections": {read(t, "agentless-empties.json"), func(c *config.Config) {
			c.HealthSyncContainers = []string{}
			c.Service.Tags, c.Service.Meta = []string{}, map[string]string{}
			c.Service.NetworkResilience = &config.NetworkResilience{}
			c.Proxy.Config, c.Proxy.Upstreams, c.Proxy.Expose = map[string]any{}, []config.Upstream{}, &config.Expose{}
			c.TransparentProxy.ExcludeInboundPorts = []int{}
		}},
		"gateway": {in(`"consulServers":{"hosts":"consul.dc1.example.com"},"gateway":{"kind":"api-gateway"}`),
			func(c *config.Config) {
				c.Service = nil
				c.Gateway = &config.Gateway{Kind: "api-gateway", HealthCheckPort: 22000}
				c.TransparentProxy.Enabled = false
			}},
		"controller alone": {in(`"consulServers":{"hosts":"consul.dc1.example.com"},"controller":{"partitionsEnabled":true}`), func(c *config.Config) {
			c.Service = nil
			c.Controller = config.Controller{IAMRolePath: "/consul-ecs/", PartitionsEnabled: true, Partition: "default"}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := agentlessDefaults()
			tt.change(want)
			if diff := cmp.Diff(want, mustParse(t, tt.doc)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseReadsEveryAgentlessField(t *testing.T) {
	t.Parallel()
	want := &config.Config{
		BootstrapDir: "/consul", LogLevel: "DEBUG", LogJSON: true,
		ConsulServers: &config.ConsulServers{
			Hosts: "exec=discover -q addrs provider=aws region=eu-central-1", SkipServerWatch: true,
			Defaults: config.ServerDefaults{CACertFile: "/consul/ca.pem", TLSServerName: "server.dc1.consul"},
			GRPC: config.ServerGRPC{Port: 18503, TLS: new(true), CACertFile: "/consul/grpc-ca.pem",
				TLSServerName: "grpc.example.com"},
			HTTP: config.ServerHTTP{Port: 18501, HTTPS: true, CACertFile: "/consul/http-ca.pem",
				TLSServerName: "http.example.com"},
		},
		ConsulLogin: config.ConsulLogin{
			Enabled: true, Method: "my-method", Datacenter: "dc1", Meta: map[string]string{"team": "red"},
			Region:      "eu-central-1",
			STSEndpoint: "https://sts.example.com", ServerIDHeaderValue: "my.consul.example.com",
		},
		Controller:           config.Controller{IAMRolePath: "/mesh/", PartitionsEnabled: true, Partition: "part"},
		HealthSyncContainers: []string{"api", "cache"},
		HealthSync:           config.HealthSync{Startup: map[string]string{"api": "tcp"}},
		Service: &config.Service{
			Name: "blue-api_2", Port: 8080, Tags: []string{"a", "b"}, EnableTagOverride: true,
			Meta: map[string]string{"version": "7"}, Weights: &config.Weights{Passing: 10}, Namespace: "ns",
			Partition: "part",
			NetworkResilience: &config.NetworkResilience{Enabled: true, OutlierDetection: &config.OutlierDetection{
				Interval: new(20_000_000_000), MaxFailures: new(7), EnforcingConsecutive5xx: new(90),
				Consecutive5xx:            new(8),
				ConsecutiveGatewayFailure: new(9), EnforcingConsecutiveGatewayFailure: new(80),
				MaxEjectionPercent: new(30),
			}},
		},
		Proxy: &config.Proxy{
			Config: map[string]any{"protocol": "http"}, PublicListenerPort: 21000, HealthCheckPort: 22001,
			LocalServiceAddress: "127.0.0.5", Mode: "dataplane",
			Upstreams: []config.Upstream{{
				DestinationType: "service", DestinationNamespace: "ns2", DestinationPartition: "p2",
				DestinationPeer: "east",
				DestinationName: "db", Datacenter: "dc2", LocalBindAddress: "127.0.0.2", LocalBindPort: 1234,
				Config: map[string]any{"connect_timeout_ms": 500.0}, MeshGateway: &config.MeshGateway{Mode: "local"},
			}},
			MeshGateway: &config.MeshGateway{Mode: "remote"},
			Expose: &config.Expose{Paths: []config.ExposePath{{ListenerPort: 21500, Path: "/metrics",
				LocalPathPort: 9102, Protocol: "http2"}}},
		},
		TransparentProxy: config.TransparentProxy{
			Enabled: true, ExcludeInboundPorts: []int{8443, 9443}, ExcludeOutboundPorts: []int{25},
			ExcludeOutboundCIDRs: []string{"10.1.0.0/16"}, ExcludeUIDs: []string{"1000"},
			ConsulDNS: config.ConsulDNS{Enabled: true},
			Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
			UIDs:      []config.UIDs{{First: 1000, Last: 1000}},
		},
	}
	if diff := cmp.Diff(want, mustParse(t, read(t, "agentless-everything.json")),
		cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExclusionsAreRead(t *testing.T) {
	t.Parallel()
	const exclusions = `"excludeOutboundCIDRs":["10.1.2.3/8","192.0.2.1","2001:db8:1::9/48"],"excludeUIDs":["1000","2000-2999"]`
	got := mustParse(t, agentless(`"transparentProxy":{`+exclusions+`}`)).TransparentProxy
	if text := fmt.Sprint(got.Prefixes, got.UIDs); text != "[10.0.0.0/8 192.0.2.1/32 2001:db8:1::/48] "+
		"[1000 2000-2999]" {
		t.Errorf("got %s", text)
	}
}

func TestAgentlessGatewayKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mesh-gateway", "terminating-gateway", "api-gateway"} {
		cfg := mustParse(t, in(`"consulServers":{"hosts":"h"},"gateway":{"kind":"`+kind+`","healthCheckPort":22002}`))
		if diff := cmp.Diff(&config.Gateway{Kind: kind, HealthCheckPort: 22002}, cfg.Gateway); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A given object with some fields must not turn the others into zeros, which switch
// the detection off, nor into settings, which old servers do not know.
func TestPartialOutlierDetectionHasNothingElse(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]config.OutlierDetection{
		``:                       {},
		`"interval":0`:           {Interval: new(0)},
		`"maxFailures":3`:        {MaxFailures: new(3)},
		`"maxEjectionPercent":0`: {MaxEjectionPercent: new(0)},
		`"enforcingConsecutiveGatewayFailure":0,"consecutive5xx":null`: {EnforcingConsecutiveGatewayFailure: new(0)},
	} {
		cfg := mustParse(t, in(`"consulServers":{"hosts":"h"},"service":{"port":1,"networkResilienceConfig":{"enabled":true,"outlierDetection":{`+fields+`}}}`))
		if diff := cmp.Diff(&want, cfg.Service.NetworkResilience.OutlierDetection); diff != "" {
			t.Errorf("%s: -want +got:\n%s", fields, diff)
		}
	}
}

func TestConsulDNSNeedsTheTransparentProxy(t *testing.T) {
	t.Parallel()
	const dns = `"consulDNS":{"enabled":true}`
	for doc, want := range map[string]config.TransparentProxy{
		agentless(`"transparentProxy":{` + dns + `}`): {Enabled: true,
			ConsulDNS: config.ConsulDNS{Enabled: true}},
		agentless(`"transparentProxy":{"enabled":false,` + dns + `}`): {},
		agentless(`"proxy":{"mode":"direct"},"transparentProxy":{` + dns +
			`}`): {Enabled: true, ConsulDNS: config.ConsulDNS{Enabled: true}},
		in(`"consulServers":{"hosts":"h"},"gateway":{"kind":"mesh-gateway"},"transparentProxy":{` + dns + `}`): {},
	} {
		cfg, _, _, err := parse(doc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, cfg.TransparentProxy); diff != "" {
			t.Errorf("%s: -want +got:\n%s", doc, diff)
		}
	}
}

func TestAgentlessViolations(t *testing.T) {
	t.Parallel()
	const withAgent = `: belongs to a task with a Consul client agent (no consulServers); remove it`
	servers := func(fields string) string { return in(`"service":{"port":1},"consulServers":{` + fields + `}`) }
	resilience := func(fields string) string {
		return in(`"consulServers":{"hosts":"h"},"service":{"port":1,"networkResilienceConfig":{` + fields + `}}`)
	}
	expectViolations(t, map[string]struct {
		doc  string
		want []string
	}{
		"servers as a URL": {in(`"consulServers":{"hosts":"https://consul.example:8501"}`), []string{`$.consulServers.hosts: "https://consul.example:8501" has a scheme: write the name or address alone, and use consulServers.http.https to choose the scheme`}},
		"servers with a port": {in(`"consulServers":{"hosts":"[fd00::1]:8501"}`), []string{`$.consulServers.hosts: ` +
			`"[fd00::1]:8501" has a port: write "fd00::1", and 8501 as consulServers.http.port`}},
		"a list of servers":  {in(`"consulServers":{"hosts":"10.0.0.1,10.0.0.2"}`), []string{`$.consulServers.hosts: "10.0.0.1,10.0.0.2" is no IP address and no DNS name; a name may have several addresses, and the command of exec= may print several`}},
		"server in brackets": {in(`"consulServers":{"hosts":"[::1]"}`), []string{`$.consulServers.hosts: "[::1]" is no IP address and no DNS name; a name may have several addresses, and the command of exec= may print several`}},
		"nothing but servers": {`{"consulServers":{}}`, []string{`$.bootstrapDir: is required; must be a string ` +
			`that is not empty`, `$.consulServers.hosts: is required; must be a string`}},
		"null servers": {in(`"consulServers":null`), []string{`$.consulServers: must be an object, not null`}},
		"null hosts": {servers(`"hosts":null`),
			[]string{`$.consulServers.hosts: must be a string, not null`}},
		"servers are closed": {servers(`"hosts":"h","port":8501`),
			[]string{`$.consulServers.port: unknown field; allowed: defaults, grpc, hosts, http, skipServerWatch`}},
		"gRPC TLS in words": {servers(`"hosts":"h","grpc":{"tls":"yes"}`),
			[]string{`$.consulServers.grpc.tls: must be true or false, not a string`}},
		"HTTP port": {servers(`"hosts":"h","http":{"port":70000}`),
			[]string{`$.consulServers.http.port: must be an integer from 0 to 65535, not 70000`}},
		"settings of an agent": {agentless(`"consulHTTPAddr":"h","consulCACertFile":"f"`),
			[]string{`$.consulCACertFile` + withAgent, `$.consulHTTPAddr` + withAgent}},
		"checks of an agent": {in(`"consulServers":{"hosts":"h"},"service":{"port":1,"checks":[]}`),
			[]string{`$.service.checks` + withAgent}},
		"service is closed": {in(`"consulServers":{"hosts":"h"},"service":{"port":1,"Port":2}`), []string{
			`$.service.Port: unknown field; did you mean "port"?; allowed: enableTagOverride, meta, name, namespace, ` +
				`networkResilienceConfig, partition, port, tags, weights`}},
		"null service": {in(`"consulServers":{"hosts":"h"},"service":null`),
			[]string{`$.service: must be an object, not null`}},
		"upper-case names": {in(`"consulServers":{"hosts":"h"},"service":{"port":1,"name":"Web"},"gateway":{"kind":"api-gateway","name":"GW"}`), []string{
			`$.gateway.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or ` +
				`digit, not "GW"`,
			`$.service.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or ` +
				`digit, not "Web"`}},
		"readiness port as text": {agentless(`"proxy":{"healthCheckPort":"22000"}`),
			[]string{`$.proxy.healthCheckPort: must be an integer from 0 to 65535, not a string`}},
		"exclusions": {agentless(`"transparentProxy":{"excludeUIDs":["1000","root","9-1"],"excludeOutboundCIDRs":["10.0.0.1","10.0.0.0/99"]}`), []string{
			`$.transparentProxy.excludeOutboundCIDRs[1]: "10.0.0.0/99" is not a CIDR block such as 10.0.0.0/8, ` +
				`or an address`,
			`$.transparentProxy.excludeUIDs[1]: "root" is not a user ID such as 1000, or a range such as 1000-1999`,
			`$.transparentProxy.excludeUIDs[2]: "9-1" is not a user ID such as 1000, or a range such as 1000-1999`}},
		"proxy mode": {agentless(`"proxy":{"mode":"envoy"}`),
			[]string{`$.proxy.mode: must be one of dataplane, direct, not "envoy"`}},
		"gateway kind": {in(`"consulServers":{"hosts":"h"},"gateway":{"kind":"ingress-gateway"}`), []string{`$.gateway.kind: must be one of mesh-gateway, terminating-gateway, api-gateway, not "ingress-gateway"`}},
		"resilience of null": {resilience(`"enabled":null`),
			[]string{`$.service.networkResilienceConfig.enabled: must be true or false, not null`}},
		"no failure":             {resilience(`"outlierDetection":{"maxFailures":0}`), []string{`$.service.networkResilienceConfig.outlierDetection.maxFailures: must be an integer from 1 to 4294967295, not 0`}},
		"more than all of them":  {resilience(`"outlierDetection":{"maxEjectionPercent":101}`), []string{`$.service.networkResilienceConfig.outlierDetection.maxEjectionPercent: must be an integer from 0 to 100, not 101`}},
		"interval as a duration": {resilience(`"outlierDetection":{"interval":"10s"}`), []string{`$.service.networkResilienceConfig.outlierDetection.interval: must be an integer from 0 to 9223372036854775807, not a string`}},
		"port twice": {agentless(`"transparentProxy":{"excludeInboundPorts":[80,443,80.0]}`),
			[]string{`$.transparentProxy.excludeInboundPorts[2]: must not repeat item 0`}},
		"ports as text": {agentless(`"transparentProxy":{"excludeOutboundPorts":"80"}`),
			[]string{`$.transparentProxy.excludeOutboundPorts: must be a list of integers, not a string`}},
		"port out of range": {agentless(`"transparentProxy":{"excludeOutboundPorts":[0]}`),
			[]string{`$.transparentProxy.excludeOutboundPorts[0]: must be an integer from 1 to 65535, not 0`}},
		"user ID as a number": {agentless(`"transparentProxy":{"excludeUIDs":[1000]}`),
			[]string{`$.transparentProxy.excludeUIDs[0]: must be a string, not a number`}},
		"null Consul DNS": {agentless(`"transparentProxy":{"consulDNS":null}`),
			[]string{`$.transparentProxy.consulDNS: must be an object, not null`}},
		"flag of the old controller":   {agentless(`"controller":{"iam-role-path":"/"}`), []string{`$.controller["iam-role-path"]: unknown field; did you mean "iamRolePath"?; allowed: iamRolePath, partition, partitionsEnabled`}},
		"partition without partitions": {agentless(`"controller":{"partition":"p"}`), []string{`$.controller.partition: needs controller.partitionsEnabled; set that to true, or remove the partition`}},
	})
}

func TestAgentlessWarnings(t *testing.T) {
	t.Parallel()
	const (
		login    = `: no effect while consulLogin.enabled is not true`
		noGRPC   = `: no effect while gRPC is without TLS`
		noHTTPS  = `: no effect while consulServers.http.https is false`
		neither  = `: no effect while gRPC and HTTP are without TLS`
		redirect = `: no effect while transparentProxy.enabled is false`
		gateway  = `: no effect in a gateway task`
		noName   = "$.consulServers.grpc.tlsServerName: is absent: with a command in consulServers.hosts, " +
			"consul-dataplane needs a name in the servers' certificates to verify them"
	)
	servers := func(fields string) string {
		return in(`"service":{"port":1},"consulServers":{"hosts":"h",` + fields + `}`)
	}
	ofGateway := func(fields string) string { return in(`"consulServers":{"hosts":"h"},"gateway":{` + fields + `}`) }
	tests := map[string]struct {
		doc  string
		want []string
	}{
		"no service": {in(`"consulServers":{"hosts":"h"}`),
			[]string{`$.service: is absent: mesh-init registers a service of the task family's name at port 0`}},
		"no hosts": {in(`"consulServers":{"hosts":""},"controller":{}`), []string{`$.consulServers.hosts: is empty, ` +
			`so that no server is found: set an IP address, a DNS name, or exec= and a command that prints addresses`}},
		"unknown field of the proxy": {agentless(`"proxy":{"publicListnerPort":1}`),
			[]string{`$.proxy.publicListnerPort: unknown field, ignored; did you mean "publicListenerPort"?`}},
		"unknown fields of servers": {servers(
			`"defaults":{"cacertFile":"f"},"grpc":{"address":"a"},"http":{"tlsservername":"n"}`), []string{
			`$.consulServers.defaults.cacertFile: unknown field, ignored; did you mean "caCertFile"?`,
			`$.consulServers.grpc.address: unknown field, ignored`,
			`$.consulServers.http.tlsservername: unknown field, ignored; did you mean "tlsServerName"?`}},
		"login settings without login": {agentless(`"consulLogin":{"datacenter":"dc2","region":"r"}`),
			[]string{`$.consulLogin.datacenter` + login, `$.consulLogin.region` + login}},
		"http.tls": {servers(`"http":{"tls":false}`),
			[]string{`$.consulServers.http.tls: no effect: consulServers.http.https alone decides`}},
		"certificates without TLS": {servers(`"defaults":{"tls":false,"caCertFile":"a","tlsServerName":"b"},"grpc":{"caCertFile":"c","tlsServerName":"d"},"http":{"https":false,"caCertFile":"e","tlsServerName":"f"}`), []string{
			`$.consulServers.defaults.caCertFile` + neither, `$.consulServers.defaults.tlsServerName` + neither,
			`$.consulServers.grpc.caCertFile` + noGRPC, `$.consulServers.grpc.tlsServerName` + noGRPC,
			`$.consulServers.http.caCertFile` + noHTTPS, `$.consulServers.http.tlsServerName` + noHTTPS}},
		"servers of a command without a name": {in(`"service":{"port":1},"consulServers":{"hosts":"exec=discover","http":{"tlsServerName":"n"}}`), []string{noName}},
		"and for a gateway": {in(
			`"consulServers":{"hosts":"exec=discover"},"gateway":{"kind":"api-gateway"}`), []string{noName}},
		"and with a name": {in(
			`"service":{"port":1},"consulServers":{"hosts":"exec=discover","defaults":{"tlsServerName":"n"}}`), nil},
		"and with a name for gRPC": {in(
			`"service":{"port":1},"consulServers":{"hosts":"exec=discover","grpc":{"tlsServerName":"n"}}`), nil},
		"and without TLS": {in(
			`"service":{"port":1},"consulServers":{"hosts":"exec=discover","grpc":{"tls":false}}`), nil},
		"and without consul-dataplane": {in(
			`"service":{"port":1},"consulServers":{"hosts":"exec=discover"},"proxy":{"mode":"direct"}`), nil},
		"and for the controller": {in(`"consulServers":{"hosts":"exec=discover"},"controller":{}`), nil},
		"gRPC has its own TLS":   {servers(`"defaults":{"tls":false,"caCertFile":"a"},"grpc":{"tls":true,"caCertFile":"c"},"http":{"https":false}`), nil},
		"resilience that is off": {in(`"consulServers":{"hosts":"h"},"service":{"port":1,"networkResilienceConfig":{"outlierDetection":{}}}`), []string{
			`$.service.networkResilienceConfig.outlierDetection: no effect while ` +
				`service.networkResilienceConfig.enabled is not true`}},
		"checks of no agent": {agentless(`"proxy":{"expose":{"checks":true}}`), []string{
			`$.proxy.expose.checks: no effect without a Consul client agent, whose checks it is about; use ` +
				`proxy.expose.paths`}},
		"transparent proxy that is off": {agentless(`"transparentProxy":{"enabled":false,"excludeInboundPorts":[1],"excludeOutboundPorts":[1],"excludeOutboundCIDRs":["c"],"excludeUIDs":["1"],"consulDNS":{"enabled":true}}`), []string{
			`$.transparentProxy.consulDNS` + redirect, `$.transparentProxy.excludeInboundPorts` + redirect,
			`$.transparentProxy.excludeOutboundCIDRs` + redirect,
			`$.transparentProxy.excludeOutboundPorts` + redirect, `$.transparentProxy.excludeUIDs` + redirect}},
		"DNS of Envoy alone": {agentless(`"proxy":{"mode":"direct"},"transparentProxy":{"consulDNS":{"enabled":true}}`),
			nil},
		"gateway": {ofGateway(`"kind":"mesh-gateway","meta":{"task-id":"t"}},"healthSyncContainers":["app"],"service":{"port":1},"proxy":{},"transparentProxy":{"consulDNS":{"enabled":true}`), []string{
			`$.gateway.meta["task-id"]: no effect: consul-ecs sets this key itself, so that services of stopped ` +
				`tasks can be found`,
			`$.healthSyncContainers` + gateway, `$.proxy` + gateway + `; use gateway.proxy`, `$.service` + gateway,
			`$.transparentProxy` + gateway}},
		"transparent proxy of a gateway, off": {ofGateway(
			`"kind":"mesh-gateway"},"transparentProxy":{"enabled":false`), nil},
		"transparent proxy of a gateway, absent": {in(`"consulServers":{"hosts":"h"},"gateway":{"kind":"mesh-gateway"},"transparentProxy":null,"controller":null`), nil},
		"addresses of a mesh gateway": {ofGateway(
			`"kind":"mesh-gateway","lanAddress":{"port":1},"wanAddress":{"address":"a"}`), nil},
		"addresses of an API gateway": {ofGateway(
			`"kind":"api-gateway","lanAddress":{"port":1},"wanAddress":{"port":2}`), []string{
			`$.gateway.lanAddress: no effect: only a mesh-gateway has it`,
			`$.gateway.wanAddress: no effect: only a mesh-gateway has it`}},
		"fields of agentless with an agent": {in(
			`"service":{"port":1,"networkResilienceConfig":{}},"proxy":{"healthCheckPort":1,"mode":"x"}`), []string{
			`$.proxy.healthCheckPort: ignored: belongs to a task without a Consul client agent (with ` +
				`consulServers); remove it`,
			`$.proxy.mode: ignored: belongs to a task without a Consul client agent (with consulServers); remove it`,
			`$.service.networkResilienceConfig: ignored: belongs to a task without a Consul client agent (with ` +
				`consulServers); remove it`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, violations, got, _ := parse(tt.doc)
			if violations != nil {
				t.Fatalf("unexpected violations: %v", violations)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestGenerationFollowsFromConsulServers(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]bool{
		in(`"service":{"port":1},"proxy":{}`): false,
		agentless(`"proxy":{}`):               true,
	} {
		cfg := mustParse(t, doc)
		if cfg.Agentless() != want || cfg.GenerationName() != map[bool]string{false: "agent", true: "agentless"}[want] {
			t.Errorf("%s: got %t, called %q", doc, cfg.Agentless(), cfg.GenerationName())
		}
	}
}

// An invalid document without consulServers is compared with the generation that it
// was probably meant for.
func TestInvalidDocumentsAreReportedForTheGenerationOfTheirFields(t *testing.T) {
	t.Parallel()
	const missing, dir = `$.consulServers: is required; must be an object`,
		`$.bootstrapDir: is required; must be a string that is not empty`
	tests := map[string]struct {
		doc, generation string
		want            []string
	}{
		"empty":                      {`{}`, "agent", []string{dir}},
		"no field of one generation": {`{"service":{"port":1}}`, "agent", []string{dir}},
		"controller":                 {in(`"controller":{}`), "agentless", []string{missing}},
		"transparent proxy":          {`{"transparentProxy":null}`, "agentless", []string{dir, missing}},
		"datacenter of the login":    {in(`"consulLogin":{"datacenter":"dc1"}`), "agentless", []string{missing}},
		"network resilience": {`{"service":{"port":1,"networkResilienceConfig":{}}}`, "agentless",
			[]string{dir, missing}},
		"terminating gateway": {in(`"gateway":{"kind":"terminating-gateway"}`), "agentless", []string{missing}},
		"mesh gateway":        {`{"gateway":{"kind":"mesh-gateway"}}`, "agent", []string{dir}},
		"no gateway":          {in(`"gateway":[]`), "agent", []string{`$.gateway: must be an object, not a list`}},
		"fields of both": {in(`"consulHTTPAddr":"h","controller":{}`), "agent",
			[]string{`$.controller: belongs to a task without a Consul client agent (with consulServers); remove it`}},
		"with consulServers": {`{"consulServers":{"hosts":"h"},"consulHTTPAddr":"h"}`, "agentless",
			[]string{dir, `$.consulHTTPAddr: belongs to a task with a Consul client agent (no ` +
				`consulServers); remove it`}},
		"not JSON": {`{`, "", []string{`$: line 1, column 2: the document is cut off: unexpected end of JSON input`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got, _, err := parse(tt.doc)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if invalid, ok := errors.AsType[*config.InvalidError](err); !ok ||
				invalid.GenerationName() != tt.generation {
				t.Errorf("got %v for generation %q, want %q", err, invalid.GenerationName(), tt.generation)
			}
		})
	}
}

func TestOperatorStatesTheGeneration(t *testing.T) {
	t.Parallel()
	agent, without := in(`"service":{"port":1}`), agentless(`"proxy":{}`)
	tests := map[string]struct{ doc, generation, want string }{
		"agent":              {agent, "agent", ""},
		"agentless":          {without, "agentless", ""},
		"nothing":            {agent, "", ""},
		"another one":        {agent, "agentless", "invalid config: 2 violations\n  $: is agent by its fields, but CONSUL_ECS_GENERATION is agentless; change one of the two\n  $.consulServers: is required; must be an object"},
		"another one, agent": {without, "agent", "invalid config: 2 violations\n  $: is agentless by its fields, but CONSUL_ECS_GENERATION is agent; change one of the two\n  $.consulServers: belongs to a task without a Consul client agent (with consulServers); remove it"},
		"signs of the other": {in(`"controller":{}`), "agent", "invalid config: $.controller: belongs to a task " +
			"without a Consul client agent (with consulServers); remove it"},
		"no generation": {agent, "Agent", `CONSUL_ECS_GENERATION is "Agent": want agent or agentless, or leave ` +
			`it unset: the document has consulServers or not`},
		"no generation first": {`{`, "0.10", `CONSUL_ECS_GENERATION is "0.10": want agent or agentless, or leave it ` +
			`unset: the document has consulServers or not`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if _, _, err := config.ParseAs([]byte(tt.doc), tt.generation); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
