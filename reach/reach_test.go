package reach

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answers are those of a server for web and api, which can call each other; keys are those of Facts.
const answers = `{
  "Now": "2026-11-28T10:00:00Z",
  "Caller": {"Value": [{"Node": {"Node": "n", "Address": "10.0.0.1"}, "Service": {"ID": "web-1", "Service": "web"}}]},
  "CallerProxies": {"Value": [{"Service": {"ID": "web-1-sidecar-proxy", "Kind": "connect-proxy",
    "Proxy": {"Upstreams": [{"DestinationType": "service", "DestinationName": "api", "LocalBindPort": 1234}]}}}]},
  "Chain": {"Value": {"ServiceName": "api", "Datacenter": "dc1", "Protocol": "http", "StartNode": "resolver:api",
    "Nodes": {"resolver:api": {"Type": "resolver", "Name": "api", "Resolver": {"Target": "api"}}},
    "Targets": {"api": {"ID": "api", "Service": "api", "Datacenter": "dc1"}}}},
  "Services": {"api": {"Value": [{"Service":
    {"ID": "api-1", "Service": "api", "Port": 8080, "Weights": {"Passing": 1}}}]}},
  "Endpoints": {"api": {"Value": [{"Node": {"Address": "10.0.0.2"}, "Service": {"ID": "api-1-sidecar-proxy",
    "Kind": "connect-proxy", "Port": 20000, "Weights": {"Passing": 1, "Warning": 1},
    "Proxy": {"DestinationServiceID": "api-1", "LocalServicePort": 8080, "Config": {"protocol": "http"}}},
    "Checks": [{"CheckID": "c", "Name": "Container api", "Status": "passing"}]}]}},
  "Intentions": {"api": {"Value": {"Intentions": [
    {"SourceName": "web", "DestinationName": "api", "Action": "allow", "Precedence": 9},
    {"SourceName": "*", "DestinationName": "*", "Action": "deny", "Precedence": 5}]}}},
  "Roots": {"Value": {"TrustDomain": "x.consul", "Active": true, "NotAfter": "2036-01-01T00:00:00Z"}}
}`

// linkCase changes the answers so that a link breaks.
type linkCase struct {
	change func(*Question, *Facts)
	want   State
	link   string // of the cause
	text   string // in it or, without a cause, in any link
}

// endpoint returns the instance of api's proxy, for a change.
func endpoint(f *Facts) *Instance { return &f.Endpoints["api"].Value[0] }

// none is the answer that there is nothing.
var none = Fact[[]Instance]{}

// filtered is the answer of a server to a token without rights.
var filtered = Fact[[]Instance]{Missing: `the token may not read all of it: it needs service "x" read`}

// intentions returns the answer that has these.
func intentions(all ...Intention) map[string]Fact[Authorization] {
	return map[string]Fact[Authorization]{"api": {Value: Authorization{Intentions: all}}}
}

// permitting returns an intention for paths below /ok.
func permitting(action string) Intention {
	return Intention{
		SourceName: "web", DestinationName: "api", Precedence: 9,
		Permissions: []Permission{{Action: action, HTTP: &PermissionMatch{PathPrefix: "/ok",
			Methods: []string{"GET"}}}},
	}
}

// chained replaces the chain by one from JSON, whose targets are all ready unless api's are gone.
func chained(f *Facts, text string) {
	if err := json.Unmarshal([]byte(text), &f.Chain.Value); err != nil {
		panic(err)
	}
}

// ghost is a target without instances.
const ghost = `"Targets": {"v2": {"ID": "v2", "Service": "v2"}}`

// subset makes the target a subset of api.
func subset(f *Facts, definition string) {
	chained(f, `{"Targets": {"api": {"ID": "api", "Service": "api", "ServiceSubset": "v2", "Subset": `+definition+`}}}`)
}

func linkCases() map[string]linkCase {
	return map[string]linkCase{
		"all links are right": {func(*Question, *Facts) {}, OK, "", "intention web => api allows"},
		"the caller is not registered": {func(_ *Question, f *Facts) { f.Caller = none }, Broken, "caller",
			"web is not registered"},
		"the caller may not be read": {func(_ *Question, f *Facts) { f.Caller = filtered }, Unknown, "caller",
			"may not read"},
		"the caller has no proxy": {func(_ *Question, f *Facts) { f.CallerProxies = none }, Broken, "caller proxy",
			"no proxy"},
		"the caller is native": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service = Service{Connect: struct{ Native bool }{true}}
		}, OK, "", "needs no proxy"},
		"no upstream in the proxies that may be read": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams = nil
			f.CallerProxies.Missing = filtered.Missing
		}, Unknown, "upstream", "may not read"},
		"no healthy instance among those that may be read": {func(_ *Question, f *Facts) {
			endpoint(f).Checks[0].Status = "critical"
			f.Endpoints["api"] = Fact[[]Instance]{Value: f.Endpoints["api"].Value, Missing: filtered.Missing}
		}, Unknown, "instances", "may not read"},
		"permissions, and the protocol may not be read": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(permitting("allow"))
			f.Endpoints["api"] = filtered
		}, Unknown, "instances", "may not read"},
		"no upstream": {func(_ *Question, f *Facts) { f.CallerProxies.Value[0].Service.Proxy.Upstreams = nil }, Broken,
			"upstream", "web has no upstream"},
		"the upstream's name is another": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].DestinationName = "apl"
		}, Broken, "upstream", "it has apl"},
		"the upstream is of another datacenter": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].Datacenter = "dc2"
		}, Broken, "upstream", "it has api of datacenter dc2"},
		"the upstream is of a peer": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].DestinationPeer = "east"
		}, Broken, "upstream", "it has api of peer east"},
		"the upstream is a prepared query": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].DestinationType = "prepared_query"
		}, Broken, "upstream", "it has api (prepared query)"},
		"the upstream listens nowhere": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].LocalBindPort = 0
		}, Broken, "upstream", "no upstream for api"},
		"the upstream is a default": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].CentrallyConfigured = true
		}, Broken, "upstream", "no upstream for api"},
		"one proxy of two has the upstream": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value = append(f.CallerProxies.Value, Instance{Service: Service{Kind: "connect-proxy"}})
		}, OK, "", "only 1 of 2 proxies"},
		"transparent proxy": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy = Proxy{Mode: "transparent"}
			f.Mesh.Value.TransparentProxy.MeshDestinationsOnly = true
		}, OK, "", "MeshDestinationsOnly"},
		"the upstream sets a protocol": {func(_ *Question, f *Facts) {
			f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].Config = map[string]any{"protocol": "tcp"}
		}, OK, "", "routers and splitters have no effect"},
		"the destination is not registered": {func(_ *Question, f *Facts) {
			f.Services["api"], f.Endpoints["api"] = none, none
		}, Broken, "destination", "api is not registered"},
		"the destination may not be read": {func(_ *Question, f *Facts) {
			f.Services["api"], f.Endpoints["api"] = filtered, filtered
		}, Unknown, "destination", "may not read"},
		"the destination has no proxy": {func(_ *Question, f *Facts) { f.Endpoints["api"] = none }, Broken, "instances",
			"api has no proxy"},
		"all instances are critical": {func(_ *Question, f *Facts) {
			endpoint(f).Checks[0] = Check{Name: "Container api", Status: "critical", Output: "UNHEALTHY\n  since 10:00"}
		}, Broken, "instances", "Container api is critical (UNHEALTHY since 10:00)"},
		"one of two instances is critical": {func(_ *Question, f *Facts) {
			f.Endpoints["api"] = Fact[[]Instance]{Value: append(f.Endpoints["api"].Value,
				Instance{Service: Service{ID: "api-2"}, Checks: []Check{{CheckID: "serfHealth", Status: "critical"}}})}
		}, OK, "", "1 of 2 instances of api healthy; api-2: serfHealth is critical"},
		"the instance has weight 0 with a warning": {func(_ *Question, f *Facts) {
			endpoint(f).Service.Weights.Warning = 0
			endpoint(f).Checks[0].Status = "warning"
		}, Broken, "instances", "the weight of the instance is 0"},
		"the proxy has no port": {func(_ *Question, f *Facts) { endpoint(f).Service.Port = 0 }, Broken, "proxy port",
			"has no port"},
		"the security group is named": {func(*Question, *Facts) {}, OK, "", "to 10.0.0.2:20000"},
		"the application's port is 0": {func(_ *Question, f *Facts) { endpoint(f).Service.Proxy.LocalServicePort = 0 },
			Broken, "application port", "does not know"},
		"the application's port differs": {func(_ *Question,
			f *Facts) {
			endpoint(f).Service.Proxy.LocalServicePort = 80
		},
			OK, "", "connects to port 80, and api-1 is registered with port 8080"},
		"the application is critical, its proxy is not": {func(_ *Question, f *Facts) {
			f.Services["api"].Value[0].Checks = []Check{{Name: "http", Status: "critical"}}
		}, OK, "", "gets requests all the same"},
		"intention denies": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(Intention{SourceName: "web", DestinationName: "api", Action: "deny"})
		}, Broken, "intention", "web => api denies"},
		"wildcard denies": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(Intention{SourceName: "*", DestinationName: "api", Action: "deny"})
		}, Broken, "intention", "* => api denies"},
		"intention of another source": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(Intention{SourceName: "shop", DestinationName: "api", Action: "allow"})
		}, Broken, "intention", "the default is deny"},
		"intention of a peer": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(Intention{SourceName: "web", SourcePeer: "east", DestinationName: "api",
				Action: "allow"})
		}, Broken, "intention", "the default is deny"},
		"the default allows": {func(_ *Question, f *Facts) {
			f.Intentions["api"] = Fact[Authorization]{Value: Authorization{Default: true}}
		}, OK, "", "the default is allow"},
		"intentions may not be read": {func(_ *Question, f *Facts) {
			f.Intentions["api"] = Fact[Authorization]{Missing: "needs intentions"}
		}, Unknown, "intention", "needs intentions"},
		"intentions may not all be read, the server allows": {func(_ *Question, f *Facts) {
			f.Intentions["api"] = Fact[Authorization]{Missing: "needs intentions", Value: Authorization{Default: true}}
		}, OK, "", "the server allows web to call api"},
		"a broken link before an unknown one": {func(_ *Question, f *Facts) {
			f.Intentions["api"] = Fact[Authorization]{Missing: "needs intentions"}
			f.CallerProxies = none
		}, Broken, "caller proxy", "no proxy"},
		"a permission allows": {func(_ *Question, f *Facts) { f.Intentions = intentions(permitting("allow")) }, OK, "",
			"permission 1 of intention web => api allows GET /ok"},
		"a permission denies": {func(_ *Question, f *Facts) { f.Intentions = intentions(permitting("deny")) }, Broken,
			"intention", "permission 1 of intention web => api denies GET /ok"},
		"no permission fits": {func(q *Question, f *Facts) {
			q.Request.Method = "POST"
			f.Intentions = intentions(permitting("allow"))
		}, Broken, "intention", "no permission of intention web => api fits POST /ok"},
		"permissions with tcp": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(permitting("allow"))
			endpoint(f).Service.Proxy.Config = nil
		}, Broken, "intention", "the protocol of api is tcp"},
		"a JSON Web Token is wanted": {func(_ *Question, f *Facts) {
			a := f.Intentions["api"]
			a.Value.JWT = true
			f.Intentions["api"] = a
		}, Unknown, "intention", "JSON Web Token"},
		"the entries do not fit": {func(_ *Question, f *Facts) { f.ChainFault = "inconsistent protocols" }, Broken,
			"discovery chain", "inconsistent protocols"},
		"the chain may not be read": {func(_ *Question, f *Facts) { f.Chain.Missing = "needs service" }, Unknown,
			"discovery chain", "needs service"},
		"the redirect leads nowhere": {func(_ *Question, f *Facts) {
			chained(f, `{"Nodes": {"resolver:api": {"Resolver": {"Target": "v2"}}}, `+ghost+`}`)
		}, Broken, "destination", "v2 is not registered"},
		"the subset has no instance": {func(_ *Question, f *Facts) {
			subset(f, `{"Filter": "Meta.v == 2"}`)
			f.Endpoints["api"] = none
		}, Broken, "instances", "no instance of api is in subset v2 (Meta.v == 2)"},
		"the subset has passing instances only": {func(_ *Question, f *Facts) {
			subset(f, `{"OnlyPassing": true}`)
			endpoint(f).Checks[0].Status = "warning"
		}, Broken, "instances", "Container api is warning"},
		"failover": {func(_ *Question, f *Facts) {
			chained(f,
				`{"Nodes": {"resolver:api": {"Resolver": {"Target": "v2",
				"Failover": {"Targets": ["api"]}}}}, `+ghost+`}`)
		}, OK, "", "1 of 1 instance of api by failover healthy"},
		"a split leads nowhere": {func(_ *Question, f *Facts) {
			chained(f, `{"StartNode": "s", "Nodes": {"s": {"Splits": [{"Weight": 90, "NextNode": "resolver:api"},
				{"Weight": 10, "NextNode": "v2"}]}, "v2": {"Resolver": {"Target": "v2"}}}, `+ghost+`}`)
		}, Broken, "destination", "v2 is not registered"},
		"a split without weight leads nowhere": {func(_ *Question, f *Facts) {
			chained(f, `{"StartNode": "s", "Nodes": {"s": {"Splits": [{"Weight": 100, "NextNode": "resolver:api"},
				{"Weight": 0, "NextNode": "v2"}]}}}`)
		}, OK, "", "intention web => api allows"},
		"no split has weight": {func(_ *Question, f *Facts) {
			chained(f,
				`{"StartNode": "s", "Nodes": {"s": {"Type": "splitter", "Splits": [{"NextNode": "resolver:api"}]}}}`)
		}, Broken, "discovery chain", "gives no split a weight"},
		"no route": {func(_ *Question, f *Facts) {
			chained(f, `{"StartNode": "r", "Nodes":
				{"r": {"Routes": [{"Definition": {"Match": {"HTTP": {"PathExact": "/x"}}}}]}}}`)
		}, Broken, "discovery chain", "no route of service-router \"api\" takes GET /ok"},
		"a route changes the path that the intention sees": {func(_ *Question, f *Facts) {
			f.Intentions = intentions(permitting("allow"))
			chained(f,
				`{"StartNode": "r", "Nodes": {"r": {"Routes": [{"Definition": {"Match": {"HTTP": {"PathPrefix": "/ok"}},
				"Destination": {"PrefixRewrite": "/v1"}}, "NextNode": "resolver:api"}]}}}`)
		}, Broken, "intention", "fits GET /v1"},
		"the chain is a loop": {func(_ *Question, f *Facts) {
			chained(f, `{"StartNode": "r", "Nodes": {"r": {"Routes": [{"NextNode": "r"}]}}}`)
		}, Broken, "discovery chain", "has no node"},
		"the root has expired": {func(_ *Question, f *Facts) { f.Roots.Value.NotAfter = f.Now.Add(-time.Hour) }, Broken,
			"certificates", "expired at 2026-11-28T09:00:00Z"},
		"there is no root": {func(_ *Question, f *Facts) { f.Roots.Value.Active = false }, Broken, "certificates",
			"no active root"},
		"no such peer": {func(q *Question, _ *Facts) { q.Peer = "east" }, Broken, "upstream",
			"no upstream for api of peer east"},
		"the peering is not active": {imported(Peering{State: "FAILING"}), Broken, "peering", "east is FAILING"},
		"the peer does not export":  {imported(Peering{State: "ACTIVE"}), Broken, "peering", "does not export api"},
		"the peer decides":          {imported(exporting("api")), Unknown, "intention", "in the cluster of peer east"},
		"the caller is of a peer": {func(q *Question, f *Facts) {
			q.SourcePeer = "east"
			f.Caller, f.CallerProxies = none, none
			f.Intentions = intentions(Intention{SourceName: "web", SourcePeer: "east", DestinationName: "api",
				Action: "allow"})
		}, OK, "", "intention web of peer east => api allows"},
	}
}

func exporting(service string) Peering {
	p := Peering{Name: "east", State: "ACTIVE"}
	p.StreamStatus.ImportedServices = []string{service}
	return p
}

// imported asks for api of a peer, for which web has an upstream.
func imported(p Peering) func(*Question, *Facts) {
	return func(q *Question, f *Facts) {
		q.Peer, f.Peering.Value = "east", &p
		f.Chain.Value = ImportedChain("api", "east")
		f.CallerProxies.Value[0].Service.Proxy.Upstreams[0].DestinationPeer = "east"
	}
}

func TestEachLink(t *testing.T) {
	t.Parallel()
	for name, c := range linkCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f Facts
			if err := json.Unmarshal([]byte(answers), &f); err != nil {
				t.Fatal(err)
			}
			q := Question{Source: "web", Destination: "api", Request: Request{Method: http.MethodGet, Path: "/ok"}}
			c.change(&q, &f)
			report := Examine(q, f)
			got := linkCase{want: report.Result}
			if report.Cause != nil {
				got.link, got.text = report.Cause.Name, report.Cause.Text
			}
			for _, l := range report.Links {
				if report.Cause == nil && strings.Contains(l.Text, c.text) {
					got.text = l.Text
				}
			}
			if strings.Contains(got.text, c.text) {
				got.text = c.text
			}
			type outcome struct {
				Result     State
				Link, Text string
			}
			want := outcome{c.want, c.link, c.text}
			if diff := cmp.Diff(want, outcome{got.want, got.link, got.text}); diff != "" {
				t.Errorf("answer (-want +got):\n%s%+v", diff, report.Links)
			}
		})
	}
}

func TestRequestsAreCompared(t *testing.T) {
	t.Parallel()
	request := Request{
		Method: "GET", Path: "/a/b", Header: map[string][]string{"x-team": {"blue"}},
		Query: map[string][]string{"v": {"2"}},
	}
	for match, want := range map[string]bool{
		`{}`:                    true,
		`{"PathExact": "/a/b"}`: true,
		`{"PathExact": "/a"}`:   false,
		`{"PathExact": "/A/B", "CaseInsensitive": true}`:                                       true,
		`{"PathPrefix": "/A"}`:                                                                 false,
		`{"PathRegex": "/a"}`:                                                                  false,
		`{"PathRegex": "/a/."}`:                                                                true,
		`{"PathRegex": "/A/.", "CaseInsensitive": true}`:                                       true,
		`{"Methods": ["PUT"]}`:                                                                 false,
		`{"Methods": ["PUT", "GET"]}`:                                                          true,
		`{"QueryParam": [{"Name": "v", "Exact": "2"}]}`:                                        true,
		`{"QueryParam": [{"Name": "v", "Exact": "1"}]}`:                                        false,
		`{"QueryParam": [{"Name": "w", "Present": true}]}`:                                     false,
		`{"Header": [{"Name": "x-team", "Present": true}]}`:                                    true,
		`{"Header": [{"Name": "x-none", "Present": true}]}`:                                    false,
		`{"Header": [{"Name": "x-none", "Present": true, "Invert": true}]}`:                    true,
		`{"Header": [{"Name": "x-team", "Prefix": "bl"}]}`:                                     true,
		`{"Header": [{"Name": "x-team", "Suffix": "ue"}]}`:                                     true,
		`{"Header": [{"Name": "x-team", "Contains": "LU"}]}`:                                   false,
		`{"Header": [{"Name": "x-team", "Contains": "LU", "IgnoreCase": true}]}`:               true,
		`{"Header": [{"Name": "x-team", "Exact": "blue", "Invert": true}]}`:                    false,
		`{"Header": [{"Name": "x-team", "Regex": "b.*"}, {"Name": "x-team", "Regex": "r.*"}]}`: false,
	} {
		var route RouteMatch
		var permission PermissionMatch
		for _, out := range []any{&route, &permission} {
			if err := json.Unmarshal([]byte(match), out); err != nil {
				t.Fatal(err)
			}
		}
		if _, got := (&Route{Match: &struct{ HTTP *RouteMatch }{&route}}).take(request); got != want {
			t.Errorf("route %s: got %v, want %v", match, got, want)
		}
		routeOnly := strings.Contains(match, "QueryParam") || strings.Contains(match, "CaseInsensitive")
		if got := (Permission{HTTP: &permission}).fits(request); got != want && !routeOnly {
			t.Errorf("permission %s: got %v, want %v", match, got, want)
		}
	}
}
