package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestBootstrapEqualsConsulsOwn(t *testing.T) {
	c := plain.Require(t)
	for _, tc := range cases() { // one after the other: proxy-defaults are global
		t.Run(tc.name, func(t *testing.T) {
			tc := fresh(tc)
			register(t, c, tc)
			got := fetch(t, c, tc.params.ProxyID)
			if diff := cmp.Diff(tc.params.Proxy, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("the agent answered another proxy (-want +got):\n%s", diff)
			}
			theirs, err := command(t, c.HTTPAddr, "", tc.params.Env, flags(tc)...)
			if err != nil {
				t.Fatal(err)
			}
			params := tc.params
			params.Proxy = got
			ours, err := Generate(params)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, theirs), tree(t, string(ours))); diff != "" {
				t.Errorf("bootstrap differs (-consul +ours):\n%s", diff)
			}
		})
	}
}

var registrations atomic.Int64

// fresh gives a case names that the agent has never seen. It remembers the
// mesh-wide settings of the services it knows, and what it remembers is some
// milliseconds old; for a new task's agent every service is new.
func fresh(tc bootCase) bootCase {
	n := fmt.Sprintf("-%d", registrations.Add(1))
	p := &tc.params
	p.ProxyID += n
	if p.Proxy.Kind == MeshGateway {
		p.Proxy.Service += n
		return tc
	}
	p.Proxy.Destination += n
	p.Proxy.Service = p.Proxy.Destination + "-sidecar-proxy" // a service identity's rights cover this name
	return tc
}

// flags returns the command's for a case; the last of a repeated flag counts.
func flags(tc bootCase) []string {
	args := []string{"-proxy-id", tc.params.ProxyID, "-grpc-addr=localhost:8502"}
	if tc.params.Proxy.Kind == MeshGateway {
		args = append(args, "-gateway", "mesh")
	}
	return append(args, tc.args...)
}

// register puts the case's proxy-defaults and proxy, as mesh-init would.
func register(t *testing.T, c *testkit.Consul, tc bootCase) {
	t.Helper()
	p := tc.params.Proxy
	if tc.defaults != nil || p.AccessLogs != nil {
		setDefaults(t, c, tc)
	}
	config := tc.local
	if config == nil {
		config = p.Config
	}
	call(t, c, http.MethodPut, "/v1/agent/service/register", object{
		"ID": tc.params.ProxyID, "Name": p.Service, "Kind": p.Kind, "Port": 20000,
		"Proxy": object{"DestinationServiceName": p.Destination, "Config": config},
	}, nil)
}

// setDefaults writes proxy-defaults until the end of the test.
func setDefaults(t *testing.T, c *testkit.Consul, tc bootCase) {
	t.Helper()
	entry := object{"Kind": "proxy-defaults", "Name": "global", "Config": tc.defaults}
	if a := tc.params.Proxy.AccessLogs; a != nil {
		entry["AccessLogs"] = object{
			"Enabled": a.Enabled, "Type": a.Type, "Path": a.Path, "JSONFormat": a.JSONFormat,
			"TextFormat": a.TextFormat,
		}
	}
	call(t, c, http.MethodPut, "/v1/config", entry, nil)
	t.Cleanup(func() { call(t, c, http.MethodDelete, "/v1/config/proxy-defaults/global", nil, nil) })
}

// difference is a place where we do not do as Consul's command does.
type difference struct {
	name   string
	config object
	args   []string
	grpc   GRPC
	// consul is what the command does: "fails", or with its output Envoy
	// "starts" or "refuses" to start.
	consul string
	// since122 is what it does from Consul 1.22 on, if that differs.
	since122 string
	// ours is the path of our error, or empty where we give a bootstrap.
	ours   string
	reason string
}

func differences() []difference {
	key := func(name string) string { return "proxy.config." + name }
	return []difference{
		{
			name: "template", config: object{keyTemplate: `{"node":{"id":"{{ .ProxyID }}","cluster":"x"}}`},
			consul: "starts", ours: key(keyTemplate),
			reason: "a template needs text/template and ties users to Consul's internal names",
		},
		{
			name: "quote in a tag", config: object{keyStatsTags: []any{`a="b"`, "c"}},
			consul: "fails", reason: "values are encoded, not pasted",
		},
		{
			name: "name as bind address", config: object{keyPrometheus: "metrics.internal:9102"},
			consul: "refuses", ours: key(keyPrometheus), reason: "the mistake shows where it is made",
		},
		{
			name: "localhost as bind address", config: object{keyPrometheus: "localhost:9102"},
			consul: "refuses", reason: "the meaning is clear, as for the admin address",
		},
		{
			name: "no host in the bind address", config: object{keyStatsBind: ":9103"},
			consul: "refuses", ours: key(keyStatsBind), reason: "the mistake shows where it is made",
		},
		{
			name: "minutes as flush interval", config: object{keyFlushInterval: "1m"},
			consul: "refuses", ours: key(keyFlushInterval), reason: "the mistake shows where it is made",
		},
		{
			name: "long flush interval", config: object{keyFlushInterval: "300s"},
			consul: "refuses", ours: key(keyFlushInterval), reason: "the mistake shows where it is made",
		},
		{
			name: "unset HOST_IP", config: object{keyStatsdURL: "udp://${HOST_IP}:8125"},
			consul: "refuses", ours: key(keyStatsdURL), reason: "the variable is named",
		},
		{
			name: "name in a statsd address", config: object{keyStatsdURL: "udp://statsd:8125"},
			consul: "refuses", ours: key(keyStatsdURL), reason: "the mistake shows where it is made",
		},
		{
			name:   "list in brackets",
			config: object{keyClusters: `[{"name":"a","connect_timeout":"1s","type":"STATIC"}]`},
			consul: "starts", reason: "Envoy takes a list in a list as one list, and we write that one",
		},
		{
			name: "list in brackets with metrics", config: object{
				keyClusters: `[{"name":"a","connect_timeout":"1s","type":"STATIC"}]`, keyPrometheus: "0.0.0.0:9102",
			},
			consul: "fails", reason: "follows from the case before",
		},
		{
			name: "TLS without CA", grpc: GRPC{Address: "https://127.0.0.1:8503"},
			args: []string{"-grpc-addr", "https://127.0.0.1:8503"}, consul: "refuses", since122: "fails",
			ours:   "gRPC CA",
			reason: "the mistake shows where it is made",
		},
	}
}

func TestDifferencesFromConsulStillExist(t *testing.T) {
	c := plain.Require(t)
	newer := c.Since(t, 1, 22)
	for i, d := range differences() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := sidecar("different-"+string(rune('a'+i)), d.config)
			tc := fresh(bootCase{params: p, args: d.args})
			if d.grpc.Address != "" {
				tc.params.GRPC = d.grpc
			}
			register(t, c, tc)
			verdict, theirs := consulsVerdict(t, c, tc)
			listed := d.consul
			if d.since122 != "" && newer {
				listed = d.since122
			}
			if verdict != listed {
				t.Errorf("Consul's command now %q, listed %q (reason: %s)", verdict, listed, d.reason)
			}
			ours, err := Generate(tc.params)
			if got := firstPath(err); got != d.ours {
				t.Errorf("our error is at %q, listed %q: %v", got, d.ours, err)
			}
			if err != nil {
				return
			}
			if err := validate(t, string(ours)); err != nil {
				t.Errorf("Envoy refuses ours: %v", err)
			}
			if verdict == "starts" && cmp.Equal(tree(t, theirs), tree(t, string(ours))) {
				t.Error("both now give the same bootstrap: take the difference off the list")
			}
		})
	}
}

// consulsVerdict returns what becomes of the command's output, and the output.
func consulsVerdict(t *testing.T, c *testkit.Consul, tc bootCase) (verdict, out string) {
	t.Helper()
	out, err := command(t, c.HTTPAddr, "", nil, flags(tc)...)
	if err != nil {
		return "fails", ""
	}
	if validate(t, out) != nil {
		return "refuses", out
	}
	return "starts", out
}

func firstPath(err error) string {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return invalid.Violations[0].Path
	}
	return ""
}

// What the command asks, and that the second answer has what the third says,
// is why one GET is enough for us.
func TestCommandReadsThreeAnswersOfWhichOneHasAll(t *testing.T) {
	c := plain.Require(t)
	for _, p := range []Params{sidecar("web-requests", nil), gateway("edge-requests", nil)} {
		tc := fresh(bootCase{params: p, defaults: object{"envoy_stats_flush_interval": "7s"}, local: object{}})
		tc.params.Proxy.AccessLogs = &AccessLogs{Enabled: true, Type: "file", Path: "/dev/stdout",
			JSONFormat: `{"a":"b"}`}
		register(t, c, tc)
		var mu sync.Mutex
		var asked []string
		target := &url.URL{Scheme: "http", Host: c.HTTPAddr}
		proxy := httputil.NewSingleHostReverseProxy(target)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.Method+" "+r.URL.Path)
			mu.Unlock()
			proxy.ServeHTTP(w, r)
		}))
		defer srv.Close()
		if _, err := command(t, srv.Listener.Addr().String(), "", nil, flags(tc)...); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"GET /v1/acl/token/self", "GET /v1/agent/service/" + tc.params.ProxyID,
			"GET /v1/config/proxy-defaults/global",
		}
		if c.Since(t, 1, 22) { // it asks whether the agent is bound to IPv6
			want = append(want, "GET /v1/agent/self")
		}
		slices.Sort(want)
		slices.Sort(asked)
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		got := fetch(t, c, tc.params.ProxyID)
		if diff := cmp.Diff(tc.params.Proxy.AccessLogs, got.AccessLogs); diff != "" {
			t.Errorf("access logs in the proxy's own answer (-want +got):\n%s", diff)
		}
		if got.Config["envoy_stats_flush_interval"] != "7s" {
			t.Errorf("config %v lacks what proxy-defaults say", got.Config)
		}
	}
}

// The agent's answer follows later changes, too: mesh-init may run again.
func TestChangedProxyDefaultsReachTheAgentsAnswer(t *testing.T) {
	c := plain.Require(t)
	tc := fresh(bootCase{params: sidecar("web-late", nil)})
	register(t, c, tc)
	if got := fetch(t, c, tc.params.ProxyID).AccessLogs; got != nil {
		t.Fatalf("access logs before there are any: %+v", got)
	}
	tc.params.Proxy.AccessLogs = &AccessLogs{Enabled: true, Type: "stderr"}
	setDefaults(t, c, tc)
	testkit.Eventually(t, "the access logs have changed", func() bool {
		return cmp.Equal(fetch(t, c, tc.params.ProxyID).AccessLogs, tc.params.Proxy.AccessLogs)
	})
}

// Consul CE has no namespaces, so a stand-in answers as an Enterprise agent.
func TestNamespaceAndPartitionAsConsul(t *testing.T) {
	t.Parallel()
	p := sidecar("web-ent", object{"envoy_telemetry_collector_bind_socket_dir": "/tmp/consul"})
	p.Proxy.Namespace, p.Proxy.Partition, p.Proxy.Datacenter = "team-a", "part-1", "east"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/agent/service/web-ent-proxy", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(object{
			"ID": p.ProxyID, "Service": p.Proxy.Service, "Kind": p.Proxy.Kind, "Datacenter": p.Proxy.Datacenter,
			"Namespace": p.Proxy.Namespace, "Partition": p.Proxy.Partition,
			"Proxy": object{"DestinationServiceName": "web-ent", "Config": p.Proxy.Config},
		})
	})
	mux.HandleFunc("GET /v1/agent/self", func(w http.ResponseWriter, _ *http.Request) { // of Consul 1.22 on
		json.NewEncoder(w).Encode(object{"DebugConfig": object{"BindAddr": "127.0.0.1"}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	theirs, err := command(t, srv.Listener.Addr().String(), "", nil, "-proxy-id", p.ProxyID,
		"-grpc-addr=localhost:8502", "-namespace", "ignored", "-partition", "part-1")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := Generate(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, theirs), tree(t, string(ours))); diff != "" {
		t.Errorf("bootstrap differs (-consul +ours):\n%s", diff)
	}
	if !strings.Contains(string(ours), `"partition": "part-1"`) {
		t.Error("the partition is not in the node's metadata")
	}
}
