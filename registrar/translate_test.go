package registrar

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// task returns the task of every golden file.
func task() workload.Task {
	return workload.Task{
		Cluster: "arn:aws:ecs:us-west-2:123456789012:cluster/prod",
		TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/prod/abc123",
		Family:  "Web-App",

		AvailabilityZone: "us-west-2b",
		Containers: []workload.Container{
			{Name: "app", Networks: []workload.Network{{IPv4Addresses: []string{"10.1.2.3"}}}},
		},
	}
}

// TestRegistrationsGolden pins the request bodies. The configurations go through config.Parse, as a user's do.
func TestRegistrationsGolden(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, doc string }{
		{"minimal", `{"bootstrapDir":"/consul"}`},
		{"ports-upstreams", `{"bootstrapDir":"/consul","service":{"name":"web","port":9090},
			"proxy":{"publicListenerPort":21000,"upstreams":[
				{"destinationName":"db","localBindPort":1234},
				{"destinationType":"prepared_query","destinationName":"q","destinationNamespace":"ns","destinationPartition":"p","datacenter":"dc2",
				 "localBindAddress":"127.0.0.2","localBindPort":1235,"config":{"connect_timeout_ms":500},"meshGateway":{"mode":"local"}}],
			"meshGateway":{"mode":"remote"},"expose":{"checks":true,"paths":[{"listenerPort":21500,"path":"/health","localPathPort":9090,"protocol":"http"}]}}}`},
		{"everything", `{"bootstrapDir":"/consul","service":{"name":"web","port":9090,"tags":["a","b"],"enableTagOverride":true,
			"meta":{"team":"x","source":"mine"},"weights":{"passing":3,"warning":1},"namespace":"ns","partition":"part"},
			"proxy":{"config":{"envoy_statsd_url":"udp://127.0.0.1:8125"}},"healthSyncContainers":["app","side"]}`},
		{"native-checks", `{"bootstrapDir":"/consul","service":{"name":"web","port":9090,"checks":[
			{"checkId":"h","name":"http","http":"http://localhost:9090/health","method":"POST","header":{"a":["b","c"]},"body":"x","interval":"10s","timeout":"1s","tlsServerName":"s","tlsSkipVerify":true,"status":"passing","notes":"n"},
			{"checkId":"t","tcp":"localhost:9090","interval":"10s","successBeforePassing":2,"failuresBeforeCritical":3},
			{"checkId":"u","udp":"localhost:53","interval":"10s"},
			{"checkId":"g","grpc":"localhost:9090","grpcUseTls":true,"interval":"10s"},
			{"checkId":"p","h2ping":"localhost:9090","h2pingUseTls":true,"interval":"10s"},
			{"checkId":"l","ttl":"15s"},
			{"checkId":"s","args":["true"],"interval":"10s"},
			{"checkId":"a","aliasNode":"n","aliasService":"db"}]}}`},
		{"gateway", `{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway"}}`},
		{"gateway-lan-port", `{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway","lanAddress":{"port":8444}}}`},
		{"gateway-addresses", `{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway","name":"gw","tags":["a"],"meta":{"k":"v"},"namespace":"default","partition":"part",
			"lanAddress":{"address":"fd00::1","port":8444},"wanAddress":{"address":"203.0.113.9"},"proxy":{"config":{"x":1}}}}`},
		{"gateway-wan-only",
			`{"bootstrapDir":"/consul","gateway":{"kind":"mesh-gateway","wanAddress":{"address":"203.0.113.9",` +
				`"port":443}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, _, err := config.Parse([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			w, err := workload.New(cfg, task(), "")
			if err != nil {
				t.Fatal(err)
			}
			var bodies []*api.AgentServiceRegistration
			if !w.IsGateway() {
				bodies = append(bodies, serviceRegistration(w))
			}
			bodies = append(bodies, proxyRegistration(w))
			got, err := json.MarshalIndent(bodies, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, "register-"+tt.name+".json", append(got, '\n'))
		})
	}
}

func TestCheckRegistrationGolden(t *testing.T) {
	t.Parallel()
	w := workload.Workload{ID: "web-1", Namespace: "ns", Partition: "part"}
	c := workload.SyncCheck{ID: "web-1-app-consul-ecs", ServiceID: "web-1",
		Container: "app", Name: "consul ecs synced", Notes: "notes"}
	got, err := json.MarshalIndent(checkRegistration(w, c, "passing"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "check.json", append(got, '\n'))
}

func TestEffectiveProxy(t *testing.T) {
	t.Parallel()
	w := workload.Workload{Namespace: "ns", Partition: "part"}
	ce := effectiveProxy(&api.AgentService{Kind: "mesh-gateway", Service: "gw", Datacenter: "dc2"}, w)
	if ce.Namespace != "ns" || ce.Partition != "part" || ce.Kind != "mesh-gateway" || ce.Service != "gw" ||
		ce.Datacenter != "dc2" || ce.AccessLogs != nil {
		t.Errorf("proxy = %+v", ce)
	}
	ent := effectiveProxy(
		&api.AgentService{Namespace: "other", Partition: "default", Proxy: &api.AgentServiceConnectProxyConfig{
			AccessLogs: &api.AccessLogsConfig{Enabled: true, JSONFormat: "{}"},
		}}, w)
	if ent.Namespace != "other" || ent.Partition != "default" || !ent.AccessLogs.Enabled ||
		ent.AccessLogs.JSONFormat != "{}" {
		t.Errorf("proxy = %+v", ent)
	}
}

func TestAliasStatus(t *testing.T) {
	t.Parallel()
	passing, warning, unset := &api.AgentServiceCheck{Status: "passing"}, &api.AgentServiceCheck{Status: "warning"},
		&api.AgentServiceCheck{}
	tests := []struct {
		checks api.AgentServiceChecks
		want   string
	}{
		{nil, "passing"},
		{api.AgentServiceChecks{passing, passing}, "passing"},
		{api.AgentServiceChecks{passing, unset}, ""},
		{api.AgentServiceChecks{warning}, ""},
	}
	for i, tt := range tests {
		if got := aliasStatus(tt.checks); got != tt.want {
			t.Errorf("%d: aliasStatus = %q, want %q", i, got, tt.want)
		}
	}
}

// TestCheckConstruction: how many checks of which kind a configuration makes.
// Both kinds at once are no configuration.
func TestCheckConstruction(t *testing.T) {
	t.Parallel()
	const http = `{"name":"h","http":"http://localhost:1","interval":"10s"}`
	for _, tt := range []struct {
		name, checks, containers string
		want                     []string
	}{
		{"none", ``, ``, nil},
		{"one own check", http, ``, []string{"h"}},
		{"two own checks", http + `,{"name":"t","tcp":"localhost:1","interval":"10s"}`, ``, []string{"h", "t"}},
		{"one container", ``, `"app"`, []string{"web-abc123-app-consul-ecs"}},
		{"two containers", ``, `"app","side"`, []string{"web-abc123-app-consul-ecs", "web-abc123-side-consul-ecs"}},
		{"both", http, `"app"`, []string{"refused"}},
	} {
		cfg, _, err := config.Parse(
			[]byte(`{"bootstrapDir":"/consul","service":{"name":"web","port":1,"checks":[` + tt.checks +
				`]},"healthSyncContainers":[` + tt.containers + `]}`))
		var got []string
		if err != nil {
			got = []string{"refused"}
		} else {
			w, err := workload.New(cfg, task(), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range serviceRegistration(w).Checks {
				got = append(got, cmp.Or(c.CheckID, c.Name))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: checks %q, want %q", tt.name, got, tt.want)
		}
	}
}
