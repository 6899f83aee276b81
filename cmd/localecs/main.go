// Command localecs is a local ECS: it runs real task definitions with real
// programs. See the README.
package main

import (
	"os"

	"github.com/meshtask/consul-ecs/localecs/command"
)

func main() { os.Exit(command.Main(os.Args[1:])) }
