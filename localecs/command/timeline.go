package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

func timelineCommand() cli.Command {
	var page string
	return cli.Command{
		Synopsis: "Write the timeline page of an earlier run",
		Usage:    "timeline [flags] [DIR]",
		Help: `
Reads the timeline.json that a run wrote to DIR, passed or not, and writes the page
that shows it: the whole run, and the start and the stop of each task with its
containers, their health, its checks in Consul, its traffic and its tokens, with a
table of every event. DIR is by default the run below .localecs that ended last; it
may be the file itself. The path of the page is written to stdout.

Exit status: 0 done, 1 usage, or there is no run.

Examples:
  $ localecs timeline .localecs/hello-mesh
  $ localecs timeline -html run-17.html artifacts/timeline.json`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&page, "html", "", "write the page to this `file`; by default timeline.html beside timeline.json")
		},
		Run: func(_ context.Context, inv *cli.Invocation) error {
			written, err := writePage(inv.Args, page)
			if err != nil {
				return &exit.UsageError{Err: err}
			}
			_, err = fmt.Fprintln(inv.Stdout, written)
			return err
		},
	}
}

// writePage writes the page of the run that args name, else of the last run, and returns
// the path of the page.
func writePage(args []string, page string) (string, error) {
	if len(args) > 1 {
		return "", errors.New("want the directory of one run, such as .localecs/hello-mesh")
	}
	var dir string
	if len(args) == 1 {
		dir = args[0]
	} else {
		var err error
		if dir, err = scenario.Latest(runsDir); err != nil {
			return "", err
		}
	}
	path, run, err := scenario.Load(dir)
	if err != nil {
		return "", err
	}
	page = cmp.Or(page, filepath.Join(filepath.Dir(path), scenario.PageFile))
	return page, scenario.WritePage(page, run)
}
