package command

import (
	"maps"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// Main runs the localecs command that args names and returns the exit code.
func Main(args []string) int {
	return cli.Main(app(), args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// app returns localecs with its commands.
func app() cli.App {
	commands := map[string]cli.Command{
		"compose": composeCommand(), "endpoints": endpoints(), "pause": pause(),
		"run": runCommand(), "schema": schemaCommand(), "serve": serveCommand(),
	}
	maps.Copy(commands, remoteCommands())
	return cli.App{Name: "localecs", Version: cli.Version(), Commands: commands}
}
