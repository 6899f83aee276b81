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
	"context"
	"io"
	"os"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/command/compose"
	"github.com/meshtask/consul-ecs/localecs/scenario/file/schema"
)

// Main runs the localecs command that args names and returns the exit code.
func Main(args []string) int {
	return cli.Main(App(), args, os.Getenv, os.Stdin, os.Stdout, os.Stderr)
}

// App is localecs with its commands.
func App() cli.App {
	return cli.App{
		Name:    "localecs",
		Version: cli.Version(),
		Commands: map[string]cli.Command{
			"compose": compose.Command(), "endpoints": compose.Endpoints(), "pause": compose.Pause(),
			"run": runCommand(), "schema": schemaCommand(), "serve": serveCommand(),
		},
	}
}

func schemaCommand() cli.Command {
	return cli.Command{
		Synopsis: "Print the JSON Schema of scenario files",
		Usage:    "schema",
		Help: `
Prints the JSON Schema (2020-12) of scenario files, with which editors check them
and complete keys. localecs run says more about what is wrong with one.

Examples:
  $ localecs schema > scenario.schema.json
  $ sed -i '1i # yaml-language-server: $schema=scenario.schema.json' scenario.yaml`,
		Run: func(_ context.Context, inv *cli.Invocation) error {
			if err := cli.NoArgs(inv); err != nil {
				return err
			}
			_, err := io.WriteString(inv.Stdout, schema.JSON())
			return err
		},
	}
}
