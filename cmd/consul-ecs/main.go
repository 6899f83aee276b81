// Command consul-ecs puts an Amazon ECS task into a Consul service mesh and
// takes it out again. See the README.
package main

import (
	"os"

	"github.com/meshtask/consul-ecs/subcommand"
)

func main() { os.Exit(subcommand.Main(os.Args[1:])) }
