// Command localecs is a local ECS: it runs real task definitions with real
// programs. See the README.
package main

import (
	"os"

	"github.com/meshtask/consul-ecs/localecs/command"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func main() {
	host.Dispatch(append(docker.Roles(), runtime.Role())...)
	os.Exit(command.Main(os.Args[1:]))
}
