package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type psFlags struct {
	location         location
	all, json, quiet bool
}

func psCommand() cli.Command {
	f := &psFlags{}
	return cli.Command{
		Synopsis: "List the tasks of a run, with their containers",
		Usage:    "ps [flags] [TASK...]",
		Help: `
Lists the tasks of the running localecs run or serve in -dir or right below it, their
containers, and ECS services: status, health, age, exit codes and addresses. -all adds
tasks that stopped within the last hour. A TASK is a name, an ARN, an ID or a prefix of
one, a service or a family.

With -json the output is one object with name, command, version, directory, tasks,
services, planned and consul. Tasks and services are as DescribeTasks and
DescribeServices of the ECS API show them, without overrides. A task also has its name, and a
container has essential, healthCheck (whether it has one), startedAt and finishedAt
(RFC 3339, as in the task metadata), restartCount and waiting (why it is not up, or
not healthy).

Exit status: 0; 1 usage or no such task; 3 no run.

Examples:
  $ localecs ps
  $ localecs ps -all web
  $ localecs ps -json | jq -r '.tasks[] | select(.healthStatus != "HEALTHY") | .name'`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.location.add(fs)
			fs.BoolVar(&f.all, "all", false, "list stopped tasks, too")
			fs.BoolVar(&f.json, "json", false, "write one JSON object")
			fs.BoolVar(&f.quiet, "q", false, "write task IDs only")
		},
		Run: run(f.run),
	}
}

func (f *psFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if f.json && f.quiet {
		return exit.Usagef("-q and -json are mutually exclusive")
	}
	_, s, err := f.location.now(ctx)
	if err != nil {
		return err
	}
	if s.Tasks, err = f.chosen(s, inv.Args); err != nil {
		return usage(err)
	}
	switch {
	case f.json:
		return writeJSON(inv.Stdout, s)
	case f.quiet:
		for _, t := range s.Tasks {
			if _, err := fmt.Fprintln(inv.Stdout, t.ID()); err != nil {
				return err
			}
		}
		return nil
	}
	_, err = inv.Stdout.Write(table(s, time.Now()))
	return err
}

// chosen returns the tasks to list.
func (f *psFlags) chosen(s control.State, words []string) ([]control.Task, error) {
	tasks := s.Tasks
	if len(words) > 0 {
		tasks = nil
	}
	for _, word := range words {
		found := s.Named(word)
		if len(found) == 0 {
			return nil, s.Unknown(word)
		}
		tasks = append(tasks, found...)
	}
	if f.all {
		return tasks, nil
	}
	return slices.DeleteFunc(tasks, control.Task.Stopped), nil
}

// table formats tasks and services.
func table(s control.State, now time.Time) []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	row(w, "TASK", "STATUS", "HEALTH", "SINCE", "EXIT", "ADDRESS", "")
	for _, t := range s.Tasks {
		row(w, t.Name, t.Status(), t.HealthStatus, since(t.StartedAt.Time, t.StoppedAt.Time, now), "", t.Address(), t.Why())
		for _, c := range t.Containers {
			row(w, "  "+c.Name, c.LastStatus, c.Health(), since(c.StartedAt, c.FinishedAt, now), exitText(c), "", containerNote(c))
		}
	}
	if len(s.Services) > 0 {
		w.Flush()
		b.WriteString("\n")
		row(w, "SERVICE", "DESIRED", "RUNNING", "PENDING", "")
		for _, v := range s.Services {
			row(w, v.ServiceName, strconv.Itoa(v.DesiredCount), strconv.Itoa(v.RunningCount), strconv.Itoa(v.PendingCount), control.Standing(v))
		}
	}
	w.Flush()
	if len(s.Tasks) == 0 {
		fmt.Fprintf(&b, "no task is running; localecs ps -all lists stopped tasks\n")
	}
	return unpadded(b.Bytes())
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// unpadded removes spaces at the ends of lines.
func unpadded(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return bytes.Join(lines, []byte("\n"))
}

// since returns the time since something ended, else since it started.
func since(started, ended, now time.Time) string {
	at := ended
	if at.IsZero() {
		at = started
	}
	if at.IsZero() {
		return ""
	}
	return now.Sub(at).Truncate(time.Second).String()
}

func exitText(c control.Container) string {
	if c.ExitCode == nil {
		return ""
	}
	return strconv.Itoa(*c.ExitCode)
}

// containerNote returns what the other columns do not show.
func containerNote(c control.Container) string {
	var words []string
	if c.StartedAt.IsZero() && c.Waiting != "" {
		words = append(words, c.Waiting)
	}
	if c.RestartCount > 0 {
		words = append(words, fmt.Sprintf("restarted %d times", c.RestartCount))
	}
	if c.Reason != "" {
		words = append(words, c.Reason)
	}
	return strings.Join(words, "; ")
}
