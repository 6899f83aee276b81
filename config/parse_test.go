package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"reflect"
)

// parse returns the outcome as lines, one per violation or warning.
func parse(doc string) (cfg *config.Config, violations, warnings []string, err error) {
	cfg, ws, err := config.Parse([]byte(doc))
	for _, w := range ws {
		warnings = append(warnings, w.Path+": "+w.Message)
	}
	var invalid *config.InvalidError
	if errors.As(err, &invalid) {
		for _, v := range invalid.Violations {
			violations = append(violations, v.Path+": "+v.Message)
		}
	}
	return cfg, violations, warnings, err
}

func mustParse(t *testing.T, doc string) *config.Config {
	t.Helper()
	cfg, _, warnings, err := parse(doc)
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if len(warnings) > 0 {
		t.Errorf("unexpected warnings: %v", warnings)
	}
	return cfg
}

// defaults returns what `{"bootstrapDir": "/consul"}` means.
func defaults() *config.Config {
	return &config.Config{
		BootstrapDir: "/consul",
		LogLevel:     "INFO",
		ConsulLogin:  config.ConsulLogin{Method: "iam-ecs-service-token", IncludeEntity: true},
		Proxy:        &config.Proxy{PublicListenerPort: 20000},
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestParseAppliesDefaults(t *testing.T) {
	t.Parallel()
	with := func(change func(*config.Config)) *config.Config {
		c := defaults()
		change(c)
		return c
	}
	tests := map[string]struct {
		doc  string
		want *config.Config
	}{
		"only the required field": {`{"bootstrapDir":"/consul"}`, defaults()},
		"surrounded by space":     {"\n\t{\"bootstrapDir\":\"/consul\"}\r\n ", defaults()},
		"null at the top level": {`{"bootstrapDir":"/consul","logLevel":null,"logJSON":null,"consulHTTPAddr":null,
			"consulCACertFile":null,"consulLogin":null,"healthSyncContainers":null,"proxy":null}`, defaults()},
		"null below": {read(t, "nested-nulls.json"), with(func(c *config.Config) {
			c.Service = &config.Service{
				Weights: nil,
				Checks:  []config.Check{{}},
			}
			c.Proxy.Upstreams = []config.Upstream{{DestinationName: "db", LocalBindPort: 9001}}
		})},
		"empty objects and lists": {`{"bootstrapDir":"/consul","consulLogin":{},"healthSyncContainers":[],"service":{"port":0,"tags":[],"meta":{},"checks":[]},"proxy":{"config":{},"upstreams":[],"expose":{}}}`,
			with(func(c *config.Config) {
				c.HealthSyncContainers = []string{}
				c.Service = &config.Service{Tags: []string{}, Meta: map[string]string{}, Checks: []config.Check{}}
				c.Proxy.Config, c.Proxy.Upstreams, c.Proxy.Expose = map[string]any{}, []config.Upstream{}, &config.Expose{}
			})},
		"port 0 is the default port": {`{"bootstrapDir":"/consul","proxy":{"publicListenerPort":0}}`, defaults()},
		"empty method is the default method": {`{"bootstrapDir":"/consul","consulLogin":{"enabled":true,"method":""}}`,
			with(func(c *config.Config) { c.ConsulLogin.Enabled = true })},
		"gateway ports": {`{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway","lanAddress":{"address":"10.1.2.3"},"wanAddress":{"address":"1.2.3.4","port":443}}}`,
			with(func(c *config.Config) {
				c.Gateway = &config.Gateway{
					Kind:       "mesh-gateway",
					LANAddress: &config.Address{Address: "10.1.2.3", Port: 8443},
					WANAddress: &config.Address{Address: "1.2.3.4", Port: 443},
				}
			})},
		"integers written as floats": {`{"bootstrapDir":"/consul","service":{"port":8.0e1},"proxy":{"publicListenerPort":21000.0}}`,
			with(func(c *config.Config) {
				c.Service = &config.Service{Port: 80}
				c.Proxy.PublicListenerPort = 21000
			})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mustParse(t, tt.doc)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	want := &config.Config{
		BootstrapDir:     "/consul",
		LogLevel:         "DEBUG",
		LogJSON:          true,
		ConsulHTTPAddr:   "https://consul.example.com:8501",
		ConsulCACertFile: "/consul/ca.pem",
		ConsulLogin: config.ConsulLogin{
			Enabled: true, Method: "my-method", IncludeEntity: false,
			Meta: map[string]string{"team": "red"}, Region: "eu-central-1",
			STSEndpoint: "https://sts.example.com", ServerIDHeaderValue: "my.consul.example.com",
		},
		HealthSyncContainers: []string{},
		Service: &config.Service{
			Name: "blue-api_2", Port: 8080, Tags: []string{"a", "b"}, EnableTagOverride: true,
			Meta:    map[string]string{"version": "7"},
			Weights: &config.Weights{Passing: 10, Warning: 0},
			Checks: []config.Check{
				{
					CheckID: "api-http", Name: "HTTP", Interval: "10s", Timeout: "1.5s", HTTP: "http://localhost:8080/health",
					Header: map[string][]string{"Accept": {"text/plain", "*/*"}}, Method: "HEAD", Body: "ping",
					Status: "passing", Notes: "a note", TLSServerName: "api.example.com", TLSSkipVerify: true,
					SuccessBeforePassing: 2, FailuresBeforeCritical: 3,
				},
				{TTL: "1h30m"},
				{TCP: "localhost:8080", Interval: "1m"},
				{UDP: "localhost:53", Interval: "500ms"},
				{GRPC: "localhost:9090/api", GRPCUseTLS: true, Interval: "30s"},
				{H2PING: "localhost:8443", H2PINGUseTLS: true, Interval: "30s"},
				{AliasNode: "node-1", AliasService: "db"},
				{Args: []string{"/bin/check", "--fast"}, Interval: "1h"},
			},
			Namespace: "ns", Partition: "part",
		},
		Proxy: &config.Proxy{
			Config:             map[string]any{"protocol": "http", "local_connect_timeout_ms": 1000.0},
			PublicListenerPort: 21000,
			Upstreams: []config.Upstream{{
				DestinationType: "prepared_query", DestinationNamespace: "ns2", DestinationPartition: "p2",
				DestinationName: "db", Datacenter: "dc2", LocalBindAddress: "127.0.0.2", LocalBindPort: 1234,
				Config:      map[string]any{"connect_timeout_ms": 500.0},
				MeshGateway: &config.MeshGateway{Mode: "local"},
			}},
			MeshGateway: &config.MeshGateway{Mode: "remote"},
			Expose: &config.Expose{Checks: true, Paths: []config.ExposePath{
				{ListenerPort: 21500, Path: "/metrics", LocalPathPort: 9102, Protocol: "http2"},
			}},
		},
	}
	if diff := cmp.Diff(want, mustParse(t, read(t, "extensive.json"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseReadsEveryGatewayField(t *testing.T) {
	t.Parallel()
	want := defaults()
	want.Gateway = &config.Gateway{
		Kind: "mesh-gateway", Name: "east-gw",
		LANAddress: &config.Address{Address: "10.0.0.9", Port: 8444},
		WANAddress: &config.Address{Address: "gw.example.com", Port: 443},
		Tags:       []string{"edge"}, Meta: map[string]string{"consul-wan-federation": "1"},
		Namespace: "default", Partition: "part",
		Proxy: &config.GatewayProxy{Config: map[string]any{"a": map[string]any{"B": 1.0}}},
	}
	got := mustParse(t, `{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway","name":"east-gw",
		"lanAddress":{"address":"10.0.0.9","port":8444},"wanAddress":{"address":"gw.example.com","port":443},
		"tags":["edge"],"meta":{"consul-wan-federation":"1"},"namespace":"default","partition":"part",
		"proxy":{"config":{"a":{"B":1}}}}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIncludeEntityIsTrueUnlessTurnedOff(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{``: true, `,"includeEntity":null`: true, `,"includeEntity":false`: false, `,"includeEntity":true`: true} {
		cfg := mustParse(t, `{"bootstrapDir":"/consul","consulLogin":{"enabled":true`+value+`}}`)
		if cfg.ConsulLogin.IncludeEntity != want {
			t.Errorf("%q: got %v, want %v", value, cfg.ConsulLogin.IncludeEntity, want)
		}
	}
}

func TestInvalidErrorHasOneLinePerViolation(t *testing.T) {
	t.Parallel()
	_, _, _, err := parse(`{"logLevel":"info","bootstrapDir":""}`)
	want := `invalid config: 2 violations
  $.bootstrapDir: must be a string that is not empty, not ""
  $.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not "info"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	_, _, _, err = parse(`{}`)
	if want := `invalid config: $.bootstrapDir: is required; must be a string that is not empty`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func BenchmarkParse(b *testing.B) {
	doc := []byte(read(b, "extensive.json"))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := config.Parse(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"extensive.json", "nested-nulls.json", "agentless-everything.json", "agentless-nested-nulls.json"} {
		f.Add([]byte(read(f, name)))
	}
	for _, doc := range []string{``, `{}`, `[1]`, `null`, `{"bootstrapDir":"/c"}{}`, `{"bootstrapDir":"/c","service":{"port":1.0}}`,
		`{"bootstrapDir":"/c","service":{"PORT":1,"port":2e3}}`, `{"a":1,"a":2}`, `{"consulServers":[]}`, `{"bootstrapDir":"/c","consulServers":{"hosts":""},"gateway":{"kind":"api-gateway"}}`, `{"bootstrapDir":"/c","proxy":{"config":{"x":1e400}}}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		cfg, warnings, err := config.Parse(doc)
		if err != nil {
			var invalid *config.InvalidError
			if !errors.As(err, &invalid) || len(invalid.Violations) == 0 {
				t.Fatalf("not a list of violations: %v", err)
			}
			for _, v := range invalid.Violations {
				if !strings.HasPrefix(v.Path, "$") || v.Message == "" {
					t.Fatalf("half a violation: %+v", v)
				}
			}
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("accepted what is no JSON: %q", doc)
		}
		if cfg.Proxy == nil || slices.Contains([]string{cfg.LogLevel, cfg.ConsulLogin.Method}, "") {
			t.Fatalf("defaults missing: %+v", cfg)
		}
		// The same text means the same again.
		again, warningsAgain, err := config.Parse(doc)
		if diff := cmp.Diff([]any{nil, warnings}, []any{err, warningsAgain}); diff != "" {
			t.Fatalf("error and warnings of the second parse (-want +got):\n%s", diff)
		}
		if !reflect.DeepEqual(cfg, again) {
			t.Fatalf("configuration %+v, and %+v at the second parse", cfg, again)
		}
	})
}

// A rejected field is not ignored, an ignored one is reported beside violations.
func TestWarningsOfAnInvalidDocument(t *testing.T) {
	t.Parallel()
	_, warnings, err := config.Parse([]byte(`{"bootstrapDir":"/consul","bogus":1,"service":{"ports":80},"consulLogin":{"on":true}}`))
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Violations) != 3 {
		t.Fatalf("error = %v, want 3 violations", err)
	}
	want := []config.Finding{{Path: "$.service.ports", Message: `unknown field, ignored; did you mean "port"?`}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
