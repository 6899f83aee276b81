package command

import (
	"context"
	"errors"
	"flag"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// flags are those of `localecs picture`.
type flags struct {
	task, page   string
	ascii, short bool
	width        int
}

// Command is `localecs picture`.
func pictureCommand() cli.Command {
	f := &flags{}
	return cli.Command{
		Synopsis: "Draw what a run has done, in the terminal or as a page",
		Usage:    "picture [flags] [DIR]",
		Help: `
Draws a run that has ended, passed or not, from the timeline.json in its directory,
by default of the last one below .localecs:
the whole run, and the start and the stop of each task with its containers, their
health, its checks in Consul, its traffic and its tokens. The legend comes last. The
page timeline.html beside it has the same, and a table of every event.

NO_COLOR and COLUMNS are honoured. Without a UTF-8 locale it draws in ASCII.

Exit status: 0 done, 1 usage, or there is no run.

Examples:
  $ localecs picture
  $ localecs picture -task api-1 .localecs/hello-mesh | less -R
  $ localecs picture -html run-17.html artifacts/timeline.json`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&f.task, "task", "", "show the start and the stop of this `task` only")
			fs.BoolVar(&f.short, "short", false, "show the whole run only, a lane for each task")
			fs.StringVar(&f.page, "html", "", "write the page to this `file` and nothing to stdout")
			fs.BoolVar(&f.ascii, "ascii", false, "draw in ASCII")
			fs.IntVar(&f.width, "width", 0, "how many `columns` to draw; the terminal's, else 80")
		},
		Run: f.run,
	}
}

func (f *flags) run(_ context.Context, inv *cli.Invocation) error {
	run, err := load(inv.Args)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if f.task != "" && run.Task(f.task) == nil {
		return cli.Usagef("-task %s: the run has no such task, it has %s", f.task, strings.Join(run.Names(), ", "))
	}
	if f.page != "" {
		if err := scenario.Page(f.page, run); err != nil {
			return &cli.UsageError{Err: err}
		}
		return nil
	}
	o := looks(inv)
	o.Tasks, o.Only, o.ASCII = !f.short, f.task, o.ASCII || f.ascii
	if f.width > 0 {
		o.Width = f.width
	}
	return scenario.Show(inv.Stdout, run, o)
}

// stateDir is where `localecs run` keeps its runs by default.
const runsDir = ".localecs"

// load reads the run that args name, else the last one.
func load(args []string) (scenario.History, error) {
	switch len(args) {
	case 0:
		dir, err := scenario.Latest(runsDir)
		if err != nil {
			return scenario.History{}, err
		}
		return scenario.Load(dir)
	case 1:
		return scenario.Load(args[0])
	}
	return scenario.History{}, errors.New("want the directory of one run, such as .localecs/hello-mesh")
}
