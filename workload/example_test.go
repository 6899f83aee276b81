package workload_test

import (
	"fmt"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

func ExampleServiceID() {
	fmt.Println(workload.ServiceID("web", "0f9de17a"))
	// Output: web-0f9de17a
}

func ExampleProxyName() {
	fmt.Println(workload.ProxyName("web"))
	// Output: web-sidecar-proxy
}

func ExampleProxyID() {
	fmt.Println(workload.ProxyID(workload.ServiceID("web", "0f9de17a")))
	// Output: web-0f9de17a-sidecar-proxy
}

func ExampleCheckID() {
	fmt.Println(workload.CheckID(workload.ServiceID("web", "0f9de17a"), "app"))
	// Output: web-0f9de17a-app-consul-ecs
}

func ExampleCatalogCheckID() {
	id := workload.ServiceID("web", "0f9de17a")
	fmt.Println(workload.CatalogCheckID(id, "app"))
	fmt.Println(workload.CatalogCheckID(workload.ProxyID(id), workload.ContainerDataplane))
	// Output:
	// web-0f9de17a-app
	// web-0f9de17a-sidecar-proxy-consul-dataplane
}

func ExampleLoginMeta() {
	cfg := &config.Config{ConsulLogin: config.ConsulLogin{Meta: map[string]string{"team": "red"}}}
	task := workload.Task{Cluster: "mesh", TaskARN: "arn:aws:ecs:eu-west-1:111122223333:task/mesh/0f9de17a"}
	fmt.Println(workload.LoginMeta(cfg, task))
	// Output: map[consul.hashicorp.com/cluster:arn:aws:ecs:eu-west-1:111122223333:cluster/mesh consul.hashicorp.com/renewed:true consul.hashicorp.com/task-id:0f9de17a team:red]
}

func ExampleNew() {
	cfg, _, err := config.Parse([]byte(`{"bootstrapDir": "/consul", "service": {"port": 9090}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	task := workload.Task{
		Cluster: "mesh",
		TaskARN: "arn:aws:ecs:eu-west-1:111122223333:task/mesh/0f9de17a",
		Family:  "Web",
	}
	w, err := workload.New(cfg, task, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Name, w.ID, w.Port)
	fmt.Println(w.Proxy.Name, w.Proxy.ID, w.Proxy.ListenerCheck)
	// Output:
	// web web-0f9de17a 9090
	// web-sidecar-proxy web-0f9de17a-sidecar-proxy 127.0.0.1:20000
}
