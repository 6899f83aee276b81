package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// runFlags are the flags of `localecs run`.
type runFlags struct {
	clusterFlags
	dir       string
	stopOrder string
	seed      *uint64 // nil when not given
	chaos     chaosFlags
	tasks     definitionFlags
	check     bool
	publish   []string
	outside   []string
	// listeners listen at the addresses of the plans, once these are ready.
	listeners map[netip.AddrPort]*net.TCPListener
}

const runHelp = `
Runs task definitions as ECS would, side by side, until all tasks have stopped. Images
are programs of this machine: -image or a file localecs.yaml beside the definition names
them, and one error lists everything that is missing, with its flag. The output of
containers is on stdout, after their names. Ctrl-C stops the tasks in ECS's order, a
second one at once. There is no Consul server: that takes a scenario.

Or runs the scenario in DIR/scenario.yaml (or FILE): starts a Consul server and the
tasks as ECS would, each task in its own network namespace, carries out the
steps and evaluates the checks. Progress goes to stdout, one line per event; each
container's output goes to a file below -dir, and at the end a page that shows the run,
timeline.html, beside the logs. After 10 s without events a line reports what the run
waits for; localecs ps shows the current state. With -json each event is an
object with time, seconds, scenario, kind, text and what belongs to the kind
(step, task, container, status, detail ...), and the last one is the report;
docs/localecs/reference.md has the table.

Several scenarios run one after the other, and a summary comes last. Mistakes in
any of them are reported before the first starts.

Programs named ${consul} and ${envoy} in the scenario come from -var, else from
.tools/bin, else from PATH; ${bin} is the directory of this program.

On a host without network namespaces, -network host makes all tasks share the host's
network. Warnings list its limitations; the scenario's subnet has to be in
127.0.0.0/8, and only one task can use a port.

With -runtime docker the same tasks run in containers of a Docker engine; an image
that the scenario does not define is the engine's, which pulls it if needed. Network,
metadata, credentials and faults are the same. It needs root on the engine's host.

Needs Linux. Without root it runs in a user namespace; containers have
other users then only with newuidmap, newgidmap and a range in /etc/subuid and
/etc/subgid. Everything it starts ends with it, also after kill -9. Ctrl-C ends
a scenario at once, without an orderly stop and without a verdict.

With -chaos a random schedule of faults takes the place of the steps: all tasks
start, traffic runs, faults come and go for a while, and every loss that they do
not explain is a failure. The same seed gives the same schedule. A schedule that
fails is run again, shorter, and the shortest that still fails is printed.

Exit status: 0 all checks passed, and of task definitions every essential container
exited with 0 or, once stopped, by its stop signal; 1 usage or file, 2 a check failed
or an essential container; 3 it could not be run; of several scenarios the highest.

Examples:
  $ localecs run -image nginx:1.27=./server,sh,curl web.json
  $ localecs run -image '*=host' -secret /db/password=x web.json db.json
  $ localecs run examples/hello-mesh
  $ localecs run -stop-order both examples/rolling-update examples/without-delay
  $ localecs run -chaos random -for 60s examples/chaos`

func runCommand() cli.Command {
	f := &runFlags{}
	return cli.Command{
		Synopsis:      "Run task definitions in a local ECS, alone or as scenarios with checks",
		Usage:         "run [flags] TASKDEF.json...|DIR|FILE...",
		Help:          runHelp,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&f.dir, "dir", ".localecs", "`directory` for logs and volumes, in a subdirectory named after the scenario (with -stop-order both, and the order); it is emptied first, and one run at a time may use it")
			fs.BoolVar(&f.json, "json", false, "write events and reports as JSON objects, one a line")
			f.clusterFlags.add(fs)
			fs.StringVar(&f.stopOrder, "stop-order", "", "replace the scenarios' stopOrder: `order` reverse or at-once, or both for a run with each")
			f.chaos.add(fs)
			f.tasks.Add(fs)
			fs.BoolVar(&f.check, "check", false, "validate and exit")
			fs.Func("publish", "`[ADDRESS:]PORT:NAME:PORT`: a TCP port of 127.0.0.1 leads to a port of a task, or in turn to "+
				"the healthy tasks of a service, as 8080:web:80; may be repeated", func(text string) error {
				f.publish = append(f.publish, text)
				_, err := file.ParsePublished(text)
				return err
			})
			fs.Func("outside", "`NAME:PORT[=HOST:PORT]`: a TCP address of this machine's network that tasks "+
				"may reach, as db:5432=127.0.0.1:5432; may be repeated", func(text string) error {
				f.outside = append(f.outside, text)
				_, err := file.ParseOutside(text)
				return err
			})
			fs.Func("seed", "replace the scenarios' seed, which selects the requests that faults affect, by `number`", f.takeSeed)
		},
		Run: f.run,
	}
}

func (f *runFlags) takeSeed(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("want a number from 0 to 2^64-1")
	}
	f.seed = &n
	return nil
}

func (f *runFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if f.chaos.missed() {
		return exit.Usagef("-for, -runs and -shrink require -chaos")
	}
	if err := useLogger(inv, f.logLevel, f.json); err != nil {
		return err
	}
	if err := f.chooseEngine(inv); err != nil {
		return err
	}
	err := host.Shortage(f.runAll(ctx, inv))
	var verdict *exit.CodeError
	switch {
	case err == nil || errors.As(err, &verdict):
		return err
	case f.json:
		inv.Log.Error("run failed", logkey.Error, err, logkey.ExitCode, cli.ExitCode(err))
		return &exit.CodeError{Code: cli.ExitCode(err)}
	}
	return &exit.Plain{Err: err}
}

func (f *runFlags) runAll(ctx context.Context, inv *cli.Invocation) error {
	if paths, err := f.tasks.Definitions(inv.Args, f.scenarioOnly()); err != nil {
		return &exit.UsageError{Err: err}
	} else if len(paths) > 0 {
		return f.runTasks(ctx, inv, paths)
	}
	var jobs []job
	var warnings []string
	var seeds *scenario.ChaosRun
	var err error
	if f.chaos.given {
		seeds, warnings, err = f.chaosSetup(inv.Args)
	} else {
		jobs, warnings, err = f.jobs(inv.Args)
	}
	var plans []*scenario.Plan
	for _, j := range jobs {
		plans = append(plans, j.plan)
	}
	if proceed, err := f.ready(inv, warnings, err, plans...); !proceed {
		return err
	}
	defer f.closeListeners()
	if err := f.claim(jobs); err != nil { // of seeds there are none
		return &exit.UsageError{Err: err}
	}
	defer closeAll(jobs)
	ctx, stop := cli.SignalContext(ctx, ends()...)
	defer stop()
	ctx, out := watch(ctx, inv.Stdout)
	follow, release, err := f.follower(ctx, inv, out)
	if err != nil {
		return err
	}
	defer release()
	if seeds != nil {
		return f.runChaos(ctx, seeds, scenario.Options{Docker: f.docker, StopOrder: f.stopOrder, Progress: follow, Log: inv.Log}, out)
	}
	outcomes, err := f.runJobs(ctx, inv, jobs, out, follow)
	if err != nil {
		return err
	}
	if len(jobs) > 1 {
		if err := scenario.WriteSummary(out, f.json, outcomes); err != nil {
			return context.Cause(ctx) // the write error
		}
	}
	if code := scenario.Code(outcomes); code != exit.CodeOK {
		return &exit.CodeError{Code: code}
	}
	return nil
}

// ready prints warnings, and reports whether there is something to run here: not after an error,
// with -check, or if a child in a user namespace has run it.
func (f *runFlags) ready(inv *cli.Invocation, warnings []string, err error, plans ...*scenario.Plan) (proceed bool,
	_ error) {
	if err == nil && !f.check {
		if done, err := f.listen(inv, plans); done || err != nil {
			return false, err // the child has printed the warnings
		}
	}
	f.warn(inv, "run", "task definition warning", warnings)
	if _, missing := errors.AsType[*host.MissingError](err); missing {
		return false, err
	}
	if err != nil {
		return false, &exit.UsageError{Err: err}
	}
	if !f.check {
		f.warn(inv, "run", "not available in this network mode", f.network.Limitations())
	}
	return !f.check, nil
}

// listen listens at the addresses of the plans.
func (f *runFlags) listen(inv *cli.Invocation, plans []*scenario.Plan) (done bool, err error) {
	var addresses []netip.AddrPort
	for _, p := range plans {
		addresses = append(addresses, p.Addresses()...)
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	addresses = slices.Compact(addresses)
	listeners, done, err := listenOrDelegate(inv, f.network, f.docker, addresses)
	f.listeners = map[netip.AddrPort]*net.TCPListener{}
	for i, l := range listeners {
		f.listeners[addresses[i]] = l
	}
	return done, err
}

func (f *runFlags) closeListeners() { closeListeners(slices.Collect(maps.Values(f.listeners))) }

// ends returns the signals that end a run.
func ends() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// runJobs runs one job after the other and writes each report. A job that cannot be run is an error
// if it is the only one.
func (f *runFlags) runJobs(ctx context.Context, inv *cli.Invocation, jobs []job, out io.Writer, follow func(scenario.Event)) ([]scenario.Outcome, error) {
	var outcomes []scenario.Outcome
	for _, j := range jobs {
		r, err := runPlan(ctx, j.plan, scenario.Options{Dir: j.dir.Name(), Docker: f.docker, StopOrder: j.order, Seed: f.seed, Progress: follow,
			Attend: serveScenario(j.dir.Name(), inv.Log), Listeners: f.listeners, Log: inv.Log})
		switch {
		case err != nil && (len(jobs) == 1 || ctx.Err() != nil):
			return nil, err
		case err == nil:
			if err := r.Write(out, f.json); err != nil {
				return nil, context.Cause(ctx) // the write error
			}
		}
		outcomes = append(outcomes, scenario.Outcome{Name: j.plan.Name(), StopOrder: j.order, Report: r, Err: err})
	}
	return outcomes, nil
}

// job is a run of a scenario.
type job struct {
	plan  *scenario.Plan
	order string   // stopOrder
	dir   *os.File // its state directory, locked
}

// bothOrders is the -stop-order that runs each scenario twice.
const bothOrders = "both"

// jobs reads and checks all scenarios. The error has the mistakes of all of them.
func (f *runFlags) jobs(paths []string) (jobs []job, warnings []string, err error) {
	if len(paths) == 0 {
		return nil, nil, errors.New("want task definitions, or a scenario directory or file")
	}
	orders, err := f.orders()
	if err != nil {
		return nil, nil, err
	}
	values, err := variables(f.vars)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	named := map[string]string{}
	for _, path := range paths {
		scene, plan, more, err := f.load(path, values)
		warnings = append(warnings, more...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, taken := named[scene.Name]; taken {
			errs = append(errs, fmt.Errorf("%s and %s are both named %s: one would overwrite the other's logs", other, path, scene.Name))
		}
		named[scene.Name] = path
		for _, order := range orders {
			order = cmp.Or(order, scene.StopOrder)
			jobs = append(jobs, job{plan: plan, order: order})
		}
	}
	return jobs, warnings, errors.Join(errs...)
}

func (f *runFlags) load(path string, values map[string]string) (*file.Scenario, *scenario.Plan, []string, error) {
	scene, err := file.Load(path)
	if err != nil {
		return nil, nil, nil, hint(path, err)
	}
	scene.Publish, scene.Outside = append(scene.Publish, f.publish...), append(scene.Outside, f.outside...)
	plan, warnings, err := scenario.Prepare(scene, values, f.network)
	if err == nil && f.docker == "" { // the engine may have other images
		warnings = append(warnings, plan.MissingImages()...)
	}
	return scene, plan, warnings, err
}

// orders returns the stop orders to run each scenario with; "" is its own.
func (f *runFlags) orders() ([]string, error) {
	switch f.stopOrder {
	case "", file.StopReverse, file.StopAtOnce:
		return []string{f.stopOrder}, nil
	case bothOrders:
		return []string{file.StopReverse, file.StopAtOnce}, nil
	}
	return nil, fmt.Errorf("-stop-order: %q: want %s, %s or %s", f.stopOrder, file.StopReverse, file.StopAtOnce, bothOrders)
}

// claim opens the directory of each job, or none. The logs of the last run stay until this one can start.
func (f *runFlags) claim(jobs []job) error {
	for i, j := range jobs {
		name := j.plan.Name()
		if f.stopOrder == bothOrders {
			name += "-" + j.order
		}
		dir, err := openStateDir(filepath.Join(f.dir, name))
		if err != nil {
			closeAll(jobs)
			return err
		}
		jobs[i].dir = dir
	}
	return nil
}

func closeAll(jobs []job) {
	for _, j := range jobs {
		if j.dir != nil {
			j.dir.Close()
		}
	}
}
