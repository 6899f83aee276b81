package workload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

func parse(t testing.TB, doc string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// in returns a configuration with the given fields.
func in(t testing.TB, fields string) *config.Config {
	t.Helper()
	return parse(t, `{"bootstrapDir":"/consul"`+fields+`}`)
}

func TestGoldenWorkloads(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, task string }{
		{"service-default", ``, "running"},
		{"service-default-ec2", `,"service":{"port":0}`, "ec2"},
		{"service-health-sync", `,"service":{"port":9090,"tags":["v1"]},"healthSyncContainers":["product-api","cache"]`,
			"running"},
		{"service-full", `,"service":{"name":"blue","port":9090,"tags":["v1","v2"],"enableTagOverride":true,
			"meta":{"team":"red","source":"mine"},"weights":{"passing":5,"warning":2},"namespace":"ns","partition":"part",
			"checks":[{"checkId":"api","http":"http://localhost:9090/health","interval":"10s"},{"udp":"localhost:53","interval":"5s"}]},
			"proxy":{"publicListenerPort":21000,"config":{"protocol":"http"},"upstreams":[{"destinationName":"db","localBindPort":5432},
			{"destinationName":"cache","localBindPort":6379,"datacenter":"dc2","meshGateway":{"mode":"local"}}],
			"meshGateway":{"mode":"remote"},"expose":{"checks":true,"paths":[{"listenerPort":21500,"path":"/metrics","localPathPort":9102}]}}`, "running"},
		{"gateway-default", `,"gateway":{"kind":"mesh-gateway"}`, "running"},
		{"gateway-default-ec2", `,"gateway":{"kind":"mesh-gateway","proxy":{"config":{"a":"b"}}}`, "ec2"},
		{"gateway-lan-port", `,"gateway":{"kind":"mesh-gateway","name":"east","lanAddress":{"port":12345},"wanAddress":{"port":443}}`, "running"},
		{"gateway-lan-address", `,"gateway":{"kind":"mesh-gateway","lanAddress":{"address":"10.1.2.3","port":12345}}`,
			"running"},
		{"gateway-wan-address", `,"gateway":{"kind":"mesh-gateway","lanAddress":{"port":12345},"wanAddress":{"address":"gw.example.com"}}`, "running"},
		{"gateway-full", `,"service":{"port":1,"name":"unused"},"healthSyncContainers":["app"],"gateway":{"kind":"mesh-gateway","name":"east",
			"lanAddress":{"address":"fd00::9"},"wanAddress":{"address":"198.51.100.7","port":443},"tags":["edge"],
			"meta":{"consul-wan-federation":"1"},"namespace":"default","partition":"part","proxy":{}}`, "running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, err := workload.New(in(t, tt.fields), metadata(t, tt.task), "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(w, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, tt.name+".golden.json", append(got, '\n'))
		})
	}
}

// The IDs are what running clusters know; literal on purpose.
func TestNewKeepsTheNamesOf06(t *testing.T) {
	t.Parallel()
	w, err := workload.New(in(t, `,"service":{"port":9090},"healthSyncContainers":["app"]`), metadata(t, "running"), "")
	if err != nil {
		t.Fatal(err)
	}
	const id = "product-api-0f9de17a6465404e8b1b2356dc13c2f8"
	want := workload.Workload{
		TaskID: "0f9de17a6465404e8b1b2356dc13c2f8", TaskARN: fargateARN,
		Locality: workload.Locality{Region: "us-west-2", Zone: "us-west-2b"},
		Name:     "product-api", ID: id, Port: 9090,
		Meta: map[string]string{"task-id": "0f9de17a6465404e8b1b2356dc13c2f8", "task-arn": fargateARN,
			"source": "consul-ecs"},
		SyncChecks: []workload.SyncCheck{{
			ID: id + "-app-consul-ecs", Container: "app", Name: "consul ecs synced",
			Notes: `Mirrors the ECS health check of the essential container "app".`, ServiceID: id,
		}},
		Proxy: workload.Proxy{Name: "product-api-sidecar-proxy", ID: id + "-sidecar-proxy", Port: 20000,
			ListenerCheck: "127.0.0.1:20000", HasConfig: true},
	}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDefaultNamesAreLowerCase(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{``, `,"service":{"port":1,"name":""}`, `,"gateway":{"kind":"mesh-gateway"}`,
		`,"gateway":{"kind":"mesh-gateway","name":null}`} {
		task := located(ipv4())
		task.Family = "Product-API"
		w, err := workload.New(in(t, fields), task, "")
		if err != nil {
			t.Fatal(err)
		}
		if w.Name != "product-api" || w.ID != "product-api-0f9de17a6465404e8b1b2356dc13c2f8" {
			t.Errorf("%s: got name %q, ID %q", fields, w.Name, w.ID)
		}
	}
}

func TestFamiliesThatAreNoServiceName(t *testing.T) {
	t.Parallel()
	for _, family := range []string{"-api", "api-", "_", "api.v1", "api v1", "äpi"} {
		for setting, fields := range map[string]string{
			"service.name": ``, "gateway.name": `,"gateway":{"kind":"mesh-gateway"}`,
		} {
			_, err := workload.New(in(t, fields), workload.Task{TaskARN: fargateARN, Family: family}, "")
			if err == nil {
				t.Fatalf("%q: no error, want one", family)
			}
			if want := "describe workload: task family "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: got %v, want one that begins with %q", family, err, want)
			}
			if want := ": set " + setting; !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%q: got %v, want one that ends with %q", family, err, want)
			}
		}
		named := `,"service":{"port":1,"name":"api"}`
		if w, err := workload.New(in(t, named), workload.Task{TaskARN: fargateARN, Family: family}, ""); err != nil ||
			w.Name != "api" {
			t.Errorf("%q with service.name: got %q, %v", family, w.Name, err)
		}
	}
	for _, family := range []string{"a", "7", "a_b-c", strings.Repeat("a", 255)} {
		if _, err := workload.New(in(t, ``), workload.Task{TaskARN: fargateARN, Family: family}, ""); err != nil {
			t.Errorf("%q: %v", family, err)
		}
	}
}

func TestNewNeedsTheCluster(t *testing.T) {
	t.Parallel()
	_, err := workload.New(in(t, ``), workload.Task{TaskARN: "arn:aws:ecs:us-west-2:1:task/id", Family: "api"}, "")
	if want := "describe workload: the task metadata are incomplete: no cluster"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestGatewayListenerCheck(t *testing.T) {
	t.Parallel()
	address := func(n workload.Network) workload.Task {
		return workload.Task{TaskARN: fargateARN, Family: "gw",
			Containers: []workload.Container{{Networks: []workload.Network{n}}}}
	}
	tests := []struct {
		name, lan string
		task      workload.Task
		want      string
	}{
		{"node address", ``, address(workload.Network{IPv4Addresses: []string{"10.0.0.1"}}), "10.0.0.1:8443"},
		{"node address, own port", `{"port":9}`, address(workload.Network{IPv4Addresses: []string{"10.0.0.1"}}),
			"10.0.0.1:9"},
		{"IPv6 node", ``, address(workload.Network{IPv6Addresses: []string{"fd00::1"}}), "[fd00::1]:8443"},
		{"LAN address", `{"address":"10.9.9.9"}`, address(workload.Network{IPv4Addresses: []string{"10.0.0.1"}}),
			"10.9.9.9:8443"},
		{"IPv6 LAN address", `{"address":"fd00::2","port":9}`, workload.Task{TaskARN: fargateARN, Family: "gw"}, "[fd00::2]:9"},
		{"host network", ``, address(workload.Network{NetworkMode: "host", IPv4Addresses: []string{""}}), "127.0.0.1:8443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fields := `,"gateway":{"kind":"mesh-gateway"}`
			if tt.lan != "" {
				fields = `,"gateway":{"kind":"mesh-gateway","lanAddress":` + tt.lan + `}`
			}
			w, err := workload.New(in(t, fields), tt.task, "")
			if err != nil {
				t.Fatal(err)
			}
			if w.Proxy.ListenerCheck != tt.want {
				t.Errorf("got %s, want %s", w.Proxy.ListenerCheck, tt.want)
			}
			if !w.IsGateway() {
				t.Error("not a gateway")
			}
		})
	}
}

func TestUserMetaCannotReplaceOwnKeysAndIsNotChanged(t *testing.T) {
	t.Parallel()
	cfg := in(t, `,"service":{"port":1,"meta":{"source":"mine","a":"b"}}`)
	w, err := workload.New(cfg, metadata(t, "running"), "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"task-id": "0f9de17a6465404e8b1b2356dc13c2f8", "task-arn": fargateARN, "source": "consul-ecs", "a": "b"}
	if diff := cmp.Diff(want, w.Meta); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(cfg.Service.Meta) != 2 {
		t.Errorf("the configuration was changed: %v", cfg.Service.Meta)
	}
}

func TestLoginMetaCannotBeReplaced(t *testing.T) {
	t.Parallel()
	cfg := in(t, `,"consulLogin":{"enabled":true,"meta":{"team":"red","consul.hashicorp.com/task-id":"x","consul.hashicorp.com/cluster":"y","consul.hashicorp.com/renewed":"z"}}`)
	want := map[string]string{
		"team":                         "red",
		"consul.hashicorp.com/task-id": "7c1de0ff52d14a4fb9a6a1d2f9f7d0c1",
		"consul.hashicorp.com/cluster": "arn:aws-us-gov:ecs:us-gov-west-1:111122223333:cluster/mesh",
		"consul.hashicorp.com/renewed": "true",
	}
	if diff := cmp.Diff(want, workload.LoginMeta(cfg, metadata(t, "ec2"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if cfg.ConsulLogin.Meta["consul.hashicorp.com/task-id"] != "x" {
		t.Error("the configuration was changed")
	}
}
