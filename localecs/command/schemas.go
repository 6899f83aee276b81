package command

import (
	"context"
	"io"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func schemaCommand() cli.Command {
	return cli.Command{
		Synopsis: "Print the JSON Schema of scenario files",
		Usage:    "schema",
		Help: `
Prints the JSON Schema (2020-12) of scenario files, with which editors check them
and complete keys. localecs run -check reports more mistakes.

Examples:
  $ localecs schema > scenario.schema.json
  $ sed -i '1i # yaml-language-server: $schema=scenario.schema.json' scenario.yaml`,
		Run: func(_ context.Context, inv *cli.Invocation) error {
			if err := cli.NoArgs(inv); err != nil {
				return err
			}
			_, err := io.WriteString(inv.Stdout, file.JSON())
			return err
		},
	}
}
