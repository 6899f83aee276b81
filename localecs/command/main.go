package command

import (
	"maps"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
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
		"compose": composeCommand(), "endpoints": Endpoints(), "pause": Pause(),
		"run": runCommand(), "schema": schemaCommand(), "serve": serveCommand(), "timeline": timelineCommand(),
	}
	maps.Copy(commands, Commands())
	return cli.With(cli.App{
		Name: "localecs", Version: cli.Version(), Commands: commands,
		Removed: map[string]string{"picture": "localecs timeline writes the page of a run"},
	})
}

// flagValues are what a shell offers for flags that have few values.
func flagValues() map[string][]string {
	return map[string][]string{
		"runtime":    {Process, Docker},
		"network":    {string(network.AWSVPC), string(network.Host)},
		"stop-order": {file.StopReverse, file.StopAtOnce, bothOrders},
		"progress":   {string(auto), string(live), string(plainMode)},
		"log-level":  {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"},
	}
}
