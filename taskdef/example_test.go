package taskdef_test

import (
	"fmt"

	"github.com/meshtask/consul-ecs/taskdef"
)

func ExampleDocument_Validate() {
	d, err := taskdef.Parse([]byte(`{
		"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
		"cpu": "0.25 vCPU", "memory": "4 GB",
		"containerDefinitions": [
			{"name": "init", "image": "init"},
			{"name": "app", "image": "app", "entrypoint": ["/app"],
			 "dependsOn": [{"containerName": "init", "condition": "SUCCESS"}]}
		]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range d.Warnings {
		fmt.Println(w)
	}
	for _, v := range d.Validate() {
		fmt.Println(v.Code, v.Path)
	}
	// Output:
	// $.containerDefinitions[1].entrypoint: unknown key; did you mean "entryPoint"?
	// depends-on-essential $.containerDefinitions[1].dependsOn[0]
	// fargate-size $.memory
}
