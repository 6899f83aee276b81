package subcommand

import (
	"context"
	"flag"
	"path/filepath"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

func installCommand() cli.Command {
	var to string
	return cli.Command{
		Synopsis: "Copy this program to a directory",
		Usage:    "install -to DIR",
		Help: `
Copies this program to DIR/consul-ecs, mode 0755, for containers whose image
does not contain it. A copy that is being executed can be replaced.
Exit codes: 1 for wrong usage or a directory that cannot be written, 3 when
copying failed.

Example:
  $ consul-ecs install -to /consul`,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&to, "to", "", "`directory` to copy to, usually the shared volume; required")
		},
		Run: func(_ context.Context, inv *cli.Invocation) error {
			if err := cli.NoArgs(inv); err != nil {
				return err
			}
			if to == "" {
				return exit.Usagef("-to is required: name the directory to copy to")
			}
			if err := volume.CheckDir(to, workload.FileBinary); err != nil {
				return &exit.UsageError{Err: err}
			}
			path := filepath.Join(to, workload.FileBinary)
			err := volume.CopySelf(path)
			switch {
			case volume.Full(err):
				return &exit.UsageError{Err: err}
			case err != nil:
				return err
			}
			inv.Log.Info("installed", logkey.Path, path)
			return nil
		},
	}
}
