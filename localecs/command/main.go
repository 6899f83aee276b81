// Package command wires the localecs binary: one short file per command, no
// decisions.
//
// Flow: 1. read flags and environment; 2. build a scenario or a cluster; 3. run
// it; 4. return its verdict as an exit code.
//
// Owns: the environment of localecs. Only this package reads it.
// Never does: know how ECS behaves.
// Start reading at: commands.
package command

import (
	"maps"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/cli/completion"
	"github.com/meshtask/consul-ecs/localecs/command/compose"
	"github.com/meshtask/consul-ecs/localecs/command/ground"
	"github.com/meshtask/consul-ecs/localecs/command/pictures"
	"github.com/meshtask/consul-ecs/localecs/command/remote"
	"github.com/meshtask/consul-ecs/localecs/command/schemas"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Main runs the localecs command that args names and returns the exit code.
func Main(args []string) int {
	return cli.Main(App(), args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// App is localecs with its commands.
func App() cli.App {
	commands := map[string]cli.Command{
		"compose": compose.Command(), "endpoints": compose.Endpoints(), "pause": compose.Pause(),
		"picture": pictures.Command(),
		"run":     runCommand(), "schema": schemas.Command(), "serve": serveCommand(),
	}
	maps.Copy(commands, remote.Commands())
	return completion.With(cli.App{Name: "localecs", Version: cli.Version(), Commands: commands})
}

// flagValues are what a shell offers for flags that have few values.
func flagValues() map[string][]string {
	return map[string][]string{
		"runtime":    {ground.Process, ground.Docker},
		"network":    {string(network.AWSVPC), string(network.Host)},
		"stop-order": {file.StopReverse, file.StopAtOnce, bothOrders},
		"progress":   {string(auto), string(live), string(plainMode)},
		"picture":    {string(pictures.OnTerminal), string(pictures.Always), string(pictures.Never)},
		"log-level":  {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"},
	}
}
