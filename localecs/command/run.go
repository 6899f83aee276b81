package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime/hostcap"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// runFlags are the flags of `localecs run`.
type runFlags struct {
	dir      string
	json     bool
	mode     mode
	logLevel string
	network  network.Mode
	vars     vars
}

// vars collects -var name=value.
type vars map[string]string

// String implements flag.Value.
func (v vars) String() string { return "" }

// Set implements flag.Value.
func (v vars) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("want name=value, got %q", s)
	}
	v[name] = value
	return nil
}

func runCommand() cli.Command {
	f := &runFlags{vars: vars{}, mode: auto}
	return cli.Command{
		Synopsis: "Run a scenario: task definitions in a local ECS, with its checks",
		Usage:    "run [flags] DIR|FILE",
		Help: `
Runs the scenario in DIR/scenario.yaml (or FILE): starts a Consul server and the
tasks as ECS would, each task in a network namespace of its own, carries out the
steps and judges the checks. Progress and the timeline go to stdout, one line per
event; each container's output goes to a file below -dir. On a terminal a block
below the events shows how everything is now; in a pipe a line every 10 s of
silence says what is waited for. NO_COLOR is honoured. With -json each event is an
object with time, seconds, scenario, kind, text and what belongs to the kind
(step, task, container, status, detail ...), and the last one is the report;
docs/LOCALECS.md has the table.

Programs named ${consul} and ${envoy} in the scenario come from -var, else from
.tools/bin, else from PATH; ${bin} is the directory of this program.

On a host that cannot give network namespaces, -network host makes all tasks
share the host's network. Warnings say what tasks lose by it; the scenario's
subnet has to be in 127.0.0.0/8, and a port can be had by one task.

Needs Linux. Without root it runs in a user namespace; containers have users of
their own then only with newuidmap, newgidmap and a range in /etc/subuid and
/etc/subgid. Whatever it starts ends with it, also after kill -9. Ctrl-C ends
everything at once, without an orderly stop and without a verdict.

Exit status: 0 all checks passed, 1 usage or scenario file, 2 a check failed,
3 it could not be run.

Example:
  $ localecs run examples/hello-mesh`,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&f.dir, "dir", ".localecs", "`directory` for logs and volumes, in a subdirectory named after the scenario; it is emptied first, and one run at a time may use it")
			fs.BoolVar(&f.json, "json", false, "write events and the report as JSON objects, one a line")
			fs.Var(&f.mode, "progress", "how to show progress: `mode` is live (a block below the events says how everything is now), plain (events only) or auto: live on a terminal")
			fs.StringVar(&f.logLevel, "log-level", "WARN", "log `level` of the simulator itself")
			fs.TextVar(&f.network, "network", network.AWSVPC, "`how` tasks are connected: awsvpc, each by a network of its own, or host, all by this host's")
			fs.Var(f.vars, "var", "set a variable of the scenario's images, `name=value`; may be repeated")
		},
		Run: f.run,
	}
}

func (f *runFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) != 1 {
		return cli.Usagef("want one scenario directory or file, got %d arguments", len(inv.Args))
	}
	if f.json && f.mode == live {
		return cli.Usagef("-progress live is for people, -json for machines: give one of them")
	}
	if err := inv.UseLogger(f.logLevel, f.json); err != nil {
		return err
	}
	err := hostcap.Shortage(f.runScenario(ctx, inv))
	var verdict *cli.ExitError
	if err == nil || f.json || errors.As(err, &verdict) {
		return err
	}
	return &cli.Plain{Err: err}
}

func (f *runFlags) runScenario(ctx context.Context, inv *cli.Invocation) error {
	plan, warnings, err := f.prepare(inv)
	if err == nil {
		if done, err := withoutRoot(inv, f.network, nil); done || err != nil {
			return err // the run inside has given the warnings
		}
	}
	f.warn(inv, "task definition has a doubtful setting", warnings)
	if _, missing := errors.AsType[*hostcap.MissingError](err); missing {
		return err
	}
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	f.warn(inv, "tasks have less than on ECS", f.network.Lost())
	dir, err := openStateDir(filepath.Join(f.dir, plan.Name()))
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	defer dir.Close()
	ctx, stop := cli.SignalContext(ctx, ends()...)
	defer stop()
	ctx, out := watchOutput(ctx, inv.Stdout)
	follow, release, err := f.follower(inv, out)
	if err != nil {
		return err
	}
	defer release()
	report, err := plan.Run(ctx, scenario.Options{Dir: dir.Name(), Progress: follow, Log: inv.Log})
	if err != nil {
		return err
	}
	if err := report.Write(out, f.json); err != nil {
		return context.Cause(ctx) // what out made of it
	}
	if len(report.Failures) > 0 {
		return &cli.ExitError{Code: cli.ExitRefused}
	}
	return nil
}

// ends are the signals that end a run.
func ends() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// prepare looks at everything that was given before it touches anything: the
// logs of the last run stay until this one can begin.
func (f *runFlags) prepare(inv *cli.Invocation) (plan *scenario.Plan, warnings []string, err error) {
	scene, err := file.Load(inv.Args[0])
	if err != nil {
		return nil, nil, err
	}
	values, err := f.vars.found()
	if err != nil {
		return nil, nil, err
	}
	return scenario.Prepare(scene, values, f.network)
}

// warn says what is accepted and perhaps not meant. message is for a log.
func (f *runFlags) warn(inv *cli.Invocation, message string, warnings []string) {
	warn(inv, "run", f.json, message, warnings)
}

func warn(inv *cli.Invocation, command string, json bool, message string, warnings []string) {
	for _, w := range warnings {
		switch {
		case json:
			inv.Log.Warn(message, logkey.Reason, w)
		case inv.Log.IsWarn():
			fmt.Fprintf(inv.Stderr, "localecs %s: warning: %s\n", command, w)
		}
	}
}

// found are the variables: given ones, else what is found here.
func (v vars) found() (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &hostcap.MissingError{What: "find this program", Need: "/proc", Instead: "mount it", Err: err}
	}
	bin := filepath.Dir(self)
	values := map[string]string{"bin": bin}
	for _, name := range []string{"consul", "envoy"} {
		if path := find(name, bin); path != "" {
			values[name] = path
		}
	}
	for name, value := range v {
		values[name] = value
	}
	return values, nil
}

// find looks in .tools/bin beside the directory of this program and below the
// working directory, then on PATH.
func find(name, bin string) string {
	for _, dir := range []string{filepath.Join(filepath.Dir(bin), ".tools", "bin"), filepath.Join(".tools", "bin")} {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			if p, err = filepath.Abs(p); err == nil {
				return p
			}
		}
	}
	p, _ := exec.LookPath(name)
	return p
}
