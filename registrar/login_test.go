package registrar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// TestLoginParams: the defaults, and everything else there is.
func TestLoginParams(t *testing.T) {
	t.Parallel()
	task := workload.Task{Cluster: "prod", TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/prod/t1", Family: "web",
		Containers: []workload.Container{{Networks: []workload.Network{{IPv4Addresses: []string{"10.0.0.9"}}}}}}
	meta := func(renewed string, more ...string) map[string]string {
		m := map[string]string{
			"consul.hashicorp.com/task-id": "t1",
			"consul.hashicorp.com/cluster": "arn:aws:ecs:us-west-2:123456789012:cluster/prod",
			"consul.hashicorp.com/renewed": renewed,
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	ours := meta("true")
	for name, tt := range map[string]struct {
		doc  string
		want consulutil.LoginParams
	}{
		"default": {`"consulLogin":{"enabled":true}`,
			consulutil.LoginParams{Method: "iam-ecs-service-token", Meta: ours}},
		"all": {`"consulLogin":{"enabled":true,"method":"mine","meta":{"team":"x"}},"service":{"port":1,` +
			`"partition":"part","namespace":"ns"}`,
			consulutil.LoginParams{Method: "mine", Partition: "part", Meta: meta("true", "team", "x")}},
		"without an agent": {`"consulServers":{"hosts":"h"},"consulLogin":{"enabled":true,"datacenter":"dc2"}`,
			consulutil.LoginParams{Method: "iam-ecs-service-token", Datacenter: "dc2", Meta: meta("false")}},
		"without an agent, direct": {`"consulServers":{"hosts":"h"},"consulLogin":{"enabled":true},` +
			`"proxy":{"mode":"direct"}`,
			consulutil.LoginParams{Method: "iam-ecs-service-token", Meta: ours}},
		"gateway": {`"consulLogin":{"enabled":true},"gateway":{"kind":"mesh-gateway","partition":"gw-part"}`,
			consulutil.LoginParams{Method: "iam-ecs-service-token", Partition: "gw-part", Meta: ours}},
	} {
		cfg, _, err := config.Parse([]byte(`{"bootstrapDir":"/consul",` + tt.doc + `}`))
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.New(cfg, task, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, registrar.LoginParams(cfg, w.Partition, task)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
