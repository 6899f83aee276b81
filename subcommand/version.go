package subcommand

import (
	"context"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// Set by the linker: -X github.com/meshtask/consul-ecs/subcommand.version=...
var (
	version    = "0.7.0"
	prerelease = "dev"
	commit     = ""
)

// Version is "v<version>[-<prerelease>][ (<commit>)]". Single quotes, which
// build systems leave around linker values, are dropped.
func Version() string {
	return formatVersion(version, prerelease, commit)
}

func formatVersion(version, prerelease, commit string) string {
	s := "v" + version
	if prerelease != "" {
		s += "-" + prerelease
	}
	if commit != "" {
		s += " (" + commit + ")"
	}
	return strings.ReplaceAll(s, "'", "")
}

func versionCommand() cli.Command {
	return cli.Command{
		Synopsis: "Print the version",
		Usage:    "version",
		Help: `
Prints the version and exits. The second word is v<version>.

Example:
  $ consul-ecs version
  consul-ecs v0.7.0`,
		Run: func(_ context.Context, inv *cli.Invocation) error {
			_, err := fmt.Fprintln(inv.Stdout, "consul-ecs", Version())
			return err
		},
	}
}
