package subcommand

import (
	"context"
	"fmt"

	"github.com/meshtask/consul-ecs/internal/cli"
)

func versionCommand() cli.Command {
	return cli.Command{
		Synopsis: "Print the version",
		Usage:    "version",
		Help: `
Prints the version and exits. The second word is v<version>.

Example:
  $ consul-ecs version
  consul-ecs v1.0.0-beta.1`,
		Run: func(_ context.Context, inv *cli.Invocation) error {
			_, err := fmt.Fprintln(inv.Stdout, "consul-ecs", cli.Version())
			return err
		},
	}
}
