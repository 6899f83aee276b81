package registrar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

func detection() *config.OutlierDetection {
	return &config.OutlierDetection{
		Interval: new(int(4 * time.Second)), EnforcingConsecutive5xx: new(80),
		Consecutive5xx: new(7), ConsecutiveGatewayFailure: new(3),
	}
}

// TestResilienceBodies pins what is written, and under which condition.
func TestResilienceBodies(t *testing.T) {
	t.Parallel()
	const entry = `{"Kind":"service-defaults","Name":"web","Namespace":"ns","Partition":"part","Protocol":"http",` +
		`"Meta":{"team":"red"},"CreateIndex":5,"ModifyIndex":7%s}`
	for name, tc := range map[string]struct {
		stored string // empty: there is none
		given  *config.OutlierDetection
		want   []string
	}{
		"no entry, no settings": {"", nil, []string{
			"GET /v1/config/service-defaults/web?ns=ns&partition=part",
			`PUT /v1/config?cas=0&ns=ns&partition=part ` +
				`{"Interval":10000000000,"MaxFailures":5,"EnforcingConsecutiveGatewayFailure":100,` +
				`"MaxEjectionPercent":50}`,
		}},
		"some settings": {fmt.Sprintf(entry, ""), detection(), []string{
			"GET /v1/config/service-defaults/web?ns=ns&partition=part",
			`PUT /v1/config?cas=7&ns=ns&partition=part ` +
				`{"Interval":4000000000,"MaxFailures":0,"EnforcingConsecutive5xx":80,` +
				`"EnforcingConsecutiveGatewayFailure":100,"Consecutive5xx":7,"ConsecutiveGatewayFailure":3,` +
				`"MaxEjectionPercent":50}`,
		}},
		"empty settings": {fmt.Sprintf(entry, ""), &config.OutlierDetection{}, []string{
			"GET /v1/config/service-defaults/web?ns=ns&partition=part",
			`PUT /v1/config?cas=7&ns=ns&partition=part ` +
				`{"MaxFailures":0,"EnforcingConsecutiveGatewayFailure":100,"MaxEjectionPercent":50}`,
		}},
		"gateway failures off": {fmt.Sprintf(entry, `,"UpstreamConfig":{"Defaults":{"Protocol":"grpc"}}`),
			&config.OutlierDetection{EnforcingConsecutiveGatewayFailure: new(0), MaxEjectionPercent: new(10),
				MaxFailures: new(2)}, []string{
				"GET /v1/config/service-defaults/web?ns=ns&partition=part",
				`PUT /v1/config?cas=7&ns=ns&partition=part ` +
					`{"MaxFailures":2,"EnforcingConsecutiveGatewayFailure":0,"MaxEjectionPercent":10}`,
			}},
		"an operator's check stays": {fmt.Sprintf(entry,
			`,"UpstreamConfig":{"Defaults":{"PassiveHealthCheck":{"MaxFailures":9}}}`), detection(), []string{
			"GET /v1/config/service-defaults/web?ns=ns&partition=part",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				line := r.Method + " " + r.URL.String()
				w.Header().Set("X-Consul-Default-Acl-Policy", "allow") // as Consul does
				if r.Method == http.MethodGet && tc.stored == "" {
					w.WriteHeader(http.StatusNotFound)
				}
				if r.Method == http.MethodPut {
					var e struct {
						Protocol       string
						Meta           map[string]string
						UpstreamConfig struct {
							Defaults struct {
								Protocol           string
								PassiveHealthCheck json.RawMessage
							}
						}
					}
					if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
						t.Error(err)
					}
					line += " " + string(e.UpstreamConfig.Defaults.PassiveHealthCheck)
					if got := e.Protocol + " " + e.Meta["team"]; tc.stored != "" && got != "http red" {
						t.Errorf("protocol and team are %q, want http red", got)
					}
					if strings.Contains(tc.stored, "grpc") && e.UpstreamConfig.Defaults.Protocol != "grpc" {
						t.Errorf("another default was lost: %+v", e)
					}
					fmt.Fprint(w, "true")
				} else {
					fmt.Fprint(w, tc.stored)
				}
				got = append(got, line)
			}))
			defer server.Close()
			w := workload.Workload{Name: "web", Namespace: "ns", Partition: "part"}
			unsupported, err := registrar.EnsureResilience(context.Background(), clientOf(t, server.URL), "tok",
				w, config.NetworkResilience{OutlierDetection: tc.given})
			if err != nil || unsupported != nil {
				t.Errorf("%v, %v", unsupported, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func clientOf(t *testing.T, address string) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestResilienceOnOldServers: Consul 1.20 has none of the fields of gateway failures.
func TestResilienceOnOldServers(t *testing.T) {
	t.Parallel()
	c := client(t, secured.Require(t), secured.Token)
	entries := c.ConfigEntries()
	read := func(name string) *api.ServiceConfigEntry {
		t.Helper()
		e, _, err := entries.Get(api.ServiceDefaults, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.(*api.ServiceConfigEntry)
	}
	if _, _, err := entries.Set(&api.ServiceConfigEntry{
		Kind: api.ServiceDefaults, Name: "resilient", Protocol: "http", MaxInboundConnections: 12,
		UpstreamConfig: &api.UpstreamConfiguration{
			Defaults: &api.UpstreamConfig{ConnectTimeoutMs: 900, Limits: &api.UpstreamLimits{MaxConnections: new(4)}},
			Overrides: []*api.UpstreamConfig{{Name: "db",
				PassiveHealthCheck: &api.PassiveHealthCheck{Interval: time.Second, MaxFailures: 3}}},
		},
	}, nil); err != nil {
		t.Fatal(err)
	}
	before := read("resilient")
	token := serviceToken(t, secured, "resilient", "other", "parsed")
	w := workload.Workload{Name: "resilient"}
	ensure := func(w workload.Workload, o *config.OutlierDetection) []string {
		t.Helper()
		unsupported, err := registrar.EnsureResilience(context.Background(), client(t, secured, ""), token, w,
			config.NetworkResilience{OutlierDetection: o})
		if err != nil {
			t.Fatal(err)
		}
		return unsupported
	}
	if got := ensure(w, detection()); !slices.Equal(got, []string{"consecutive5xx", "consecutiveGatewayFailure"}) {
		t.Errorf("unsupported = %q", got)
	}
	after := read("resilient")
	if after.ModifyIndex == before.ModifyIndex {
		t.Error("nothing was written")
	}
	before.UpstreamConfig.Defaults.PassiveHealthCheck = &api.PassiveHealthCheck{
		Interval: 4 * time.Second, EnforcingConsecutive5xx: new(uint32(80)), MaxEjectionPercent: new(uint32(50)),
	}
	before.ModifyIndex = after.ModifyIndex
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if ensure(w, nil); read("resilient").ModifyIndex != after.ModifyIndex {
		t.Error("an existing check was written again")
	}
	if got := ensure(workload.Workload{Name: "other"}, nil); got != nil {
		t.Errorf("unsupported = %q without a setting", got)
	}
	cfg, _, err := config.Parse(
		[]byte(
			`{"bootstrapDir":"/consul","consulServers":{"hosts":"h"},"service":{"port":1,` +
				`"networkResilienceConfig":{"enabled":true,"outlierDetection":{"consecutive5xx":3}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := ensure(workload.Workload{Name: "parsed"},
		cfg.Service.NetworkResilience.OutlierDetection); !slices.Equal(got, []string{"consecutive5xx"}) {
		t.Errorf("unsupported = %q of a document with one of them", got)
	}
	want := &api.PassiveHealthCheck{Interval: 10 * time.Second, MaxFailures: 5, MaxEjectionPercent: new(uint32(50))}
	if diff := cmp.Diff(want, read("other").UpstreamConfig.Defaults.PassiveHealthCheck); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = registrar.EnsureResilience(context.Background(), client(t, secured, ""), token,
		workload.Workload{Name: "foreign"}, config.NetworkResilience{})
	if got := consulutil.Classify(err); got != retry.Permanent {
		t.Fatalf("class %v, want %v: %v", got, retry.Permanent, err)
	}
	for _, want := range []string{`set passive health check in service-defaults "foreign": `, `service identity for "foreign"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}

// TestResilienceLosesNoOtherWrite: an operator who writes between our read and our write
// wins, and the next attempt takes that into account.
func TestResilienceLosesNoOtherWrite(t *testing.T) {
	t.Parallel()
	answers := []string{"false", "true"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("X-Consul-Default-Acl-Policy", "allow") // as Consul does
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	ensure := func() error {
		_, err := registrar.EnsureResilience(context.Background(), clientOf(t, server.URL), "",
			workload.Workload{Name: "web"}, config.NetworkResilience{})
		return err
	}
	if err := ensure(); err == nil || consulutil.Classify(err) != retry.NotYet {
		t.Errorf("lost race: %v", err)
	}
	if err := ensure(); err != nil {
		t.Error(err)
	}
}
