package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// serveFlags are the flags of `localecs serve`.
type serveFlags struct {
	clusterFlags
	listen   string
	images   string
	dir      string
	events   string
	throttle bool
	lag      controlplane.Lag
	// simulated has tasks without processes, whose steps take timing.
	simulated bool
	timing    simulated.Timing
}

func serveCommand() cli.Command {
	f := &serveFlags{timing: usual}
	return cli.Command{
		Synopsis: "Serve the ECS API of an empty local cluster",
		Usage:    "serve [flags]",
		Help: `
Starts an empty cluster "default" and serves its ECS API, including services and their
deployments, with STS and IAM. Exports for the aws command line and AWS's SDKs are on
stdout, and a line for each new version of a task on stderr. Tasks run as with localecs
run: as processes of this machine, each task in its own network.

A scenario file defines the images: -images takes what it has for tasks, but no tasks.
A task with another image stops with CannotPullContainerError.

A caller of the API can run programs here, so -listen takes loopback addresses only,
and calls are signed with keys that change with each start.

AWS's throttling is on; -throttle=false turns it off. AWS's answers are
eventually consistent: with -lag new=1s,eni=2s,tags=3s,lists=5s,counts=5s new tasks and
services are MISSING for 1 s, interfaces and tags appear later, and lists and the task
counts of services are 5 s old.

With -simulated tasks have no processes: they go through the statuses, versions,
interfaces and times of real ones, including services and deployments. That needs no
privileges and no images, and scales to tens of thousands of tasks; -timing sets the
time of their steps. A container runs until it is stopped, or exits with 0 if others
wait for it to COMPLETE or SUCCEED; its variable LOCALECS_SIMULATE, in its definition or
an override, changes that:
exit=3,after=10s   unhealthy=30s   stop=5s   stop=never   start=REASON

Ctrl-C ends all tasks at once, without an orderly stop, and leaves logs, and the last
state of the tasks in state.json.

Exit status: 0 after Ctrl-C or SIGTERM; 1 usage; 3 it could not be served.

Example:
  $ localecs serve -images examples/hello-mesh > exports &
  $ . ./exports
  $ aws ecs list-clusters`,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback `address` of the API; port 0 is any that is free")
			fs.StringVar(&f.images, "images", "", "scenario `directory or file` that defines the images")
			fs.StringVar(&f.dir, "dir", filepath.Join(".localecs", "serve"), "`directory` for logs and volumes; it is emptied first, and one localecs at a time may use it")
			fs.StringVar(&f.events, "events", "", "append each new version of a task to a `file`, as the object that EventBridge delivers, one a line")
			fs.BoolVar(&f.json, "json", false, "write the exports as one JSON object, and logs as JSON")
			fs.BoolVar(&f.throttle, "throttle", true, "throttle calls as AWS does")
			durations(fs, "lag", "delay of answers, `new=D,eni=D,tags=D,lists=D,counts=D` with durations such as 2s",
				duration{"new", &f.lag.New}, duration{"eni", &f.lag.Interface}, duration{"tags", &f.lag.Tags}, duration{"lists", &f.lag.Lists}, duration{"counts", &f.lag.Counts})
			f.clusterFlags.add(fs)
			fs.BoolVar(&f.simulated, "simulated", false, "simulate tasks without processes")
			durations(fs, "timing", "time of the steps of simulated tasks, `attach=D,pull=D,start=D,stop=D,detach=D,healthy=D`; "+
				"healthy is how long a task without a health check runs before it counts as healthy "+
				"(default attach=1s,pull=1s,start=500ms,stop=500ms,detach=1s,healthy=40s)",
				duration{"attach", &f.timing.Attach}, duration{"pull", &f.timing.Pull},
				duration{"start", &f.timing.Start}, duration{"stop", &f.timing.Stop},
				duration{"detach", &f.timing.Detach}, duration{"healthy", &f.timing.Healthy})
		},
		Run: f.run,
	}
}

func (f *serveFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := cli.NoArgs(inv); err != nil {
		return err
	}
	if err := control.CheckLoopback(f.listen); err != nil {
		return exit.Usagef("-listen: %w", err)
	}
	err := f.agree()
	if err != nil {
		return err
	}
	if err := f.chooseEngine(inv); err != nil {
		return err
	}
	if err := useLogger(inv, f.logLevel, f.json); err != nil {
		return err
	}
	err = f.serve(ctx, inv)
	var end *exit.SignalError
	var verdict *exit.CodeError
	switch {
	case errors.As(err, &end):
		return nil // the regular end
	case err == nil || f.json || errors.As(err, &verdict):
		return err
	}
	return &exit.Plain{Err: err}
}

// agree refuses flags that are for the other kind of tasks.
func (f *serveFlags) agree() error {
	switch {
	case !f.simulated && f.timing != usual:
		return exit.Usagef("-timing requires -simulated")
	case !f.simulated:
		return nil
	case f.network != network.AWSVPC:
		return exit.Usagef("-network and -simulated are mutually exclusive")
	case f.runtime != runtimeProcess:
		return exit.Usagef("-runtime and -simulated are mutually exclusive")
	}
	return nil
}

func (f *serveFlags) serve(ctx context.Context, inv *cli.Invocation) error {
	made, err := f.prepare(inv)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	listener, done, err := f.open(inv)
	if done || err != nil {
		return err
	}
	ctx, stop := cli.SignalContext(ctx, ends()...)
	defer stop()
	restore, err := lossyStderr(ctx, inv, f.logLevel, f.json)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer restore()
	options := control.APIOptions{Cluster: made, Listener: listener, Throttle: f.throttle, Lag: f.lag, Log: inv.Log}
	closeState, err := f.choose(inv, &options)
	if err != nil {
		listener.Close()
		return &exit.UsageError{Err: err}
	}
	defer closeState()
	observe, closeEvents, err := f.observer(ctx, inv)
	if err != nil {
		listener.Close()
		return &exit.UsageError{Err: err}
	}
	defer closeEvents()
	options.Observe = observe
	return f.until(ctx, inv, options)
}

// until serves until the context ends or no task can run any more.
func (f *serveFlags) until(ctx context.Context, inv *cli.Invocation, options control.APIOptions) error {
	ctx, out := watch(ctx, inv.Stdout)
	server, err := control.Open(options)
	if err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	defer end()
	var lost <-chan struct{} // closed when no task can run any more
	r := server.Region()
	if r != nil {
		lost = r.Cluster().Lost()
		defer serveRegion("serve", r, options.Cluster.Dir, end, inv.Log)()
	}
	if err := f.print(out, server.Exports()); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case <-ended.Done():
		err = context.Cause(ctx)
	case <-lost:
		err = r.Cluster().Err()
	}
	if closeErr := server.Close(); closeErr != nil {
		return fmt.Errorf("release the cluster: %w", closeErr)
	}
	return err
}

// choose sets up tasks without processes, or the directory of tasks with processes.
func (f *serveFlags) choose(inv *cli.Invocation, o *control.APIOptions) (closeState func() error, err error) {
	if f.simulated {
		o.Simulated = &f.timing
		if o.Cluster.Subnet == file.Default().Subnet { // too small
			o.Cluster.Subnet = simulated.DefaultSubnet
		}
		return func() error { return nil }, nil
	}
	f.warn(inv, "serve", "not available in this network mode", f.network.Limitations())
	dir, err := openStateDir(f.dir)
	if err != nil {
		return nil, err
	}
	o.Cluster.Dir = dir.Name()
	return dir.Close, nil
}

// withoutEffect returns warnings about keys for tasks that serve has no use for.
func withoutEffect(setting *file.Scenario) (warnings []string) {
	if len(setting.Publish)+len(setting.Outside) > 0 {
		warnings = append(warnings, "-images: publish and outside have no effect: only localecs run has them")
	}
	if setting.API != (file.API{}) {
		warnings = append(warnings, "-images: api has no effect: the flags -throttle and -lag take its place")
	}
	return warnings
}

// prepare reads the setting, with its images and other files.
func (f *serveFlags) prepare(inv *cli.Invocation) (cluster.Options, error) {
	setting, err := file.LoadSetting(f.images)
	if err != nil {
		return cluster.Options{}, err
	}
	f.warn(inv, "serve", "setting has no effect", withoutEffect(setting))
	if f.network == network.Host && f.images == "" {
		setting.Subnet = "127.42.0.0/24"
	}
	o := scenario.ClusterOptions(setting)
	o.Network, o.Docker, o.Log = f.network, f.docker, inv.Log
	values, err := variables(f.vars)
	if err != nil || f.simulated { // without images
		return o, err
	}
	var imageErr, secretErr, fileErr error
	o.Images, imageErr = setting.HostImages(values)
	o.Secrets, secretErr = setting.SecretTexts()
	o.EnvironmentFiles, fileErr = setting.EnvironmentFileTexts()
	return o, errors.Join(f.network.CheckSubnet(setting.Subnet), imageErr, secretErr, fileErr)
}

// open listens in the host's network.
func (f *serveFlags) open(inv *cli.Invocation) (listener net.Listener, done bool, err error) {
	address, err := net.ResolveTCPAddr("tcp", f.listen)
	if err != nil {
		return nil, false, fmt.Errorf("-listen: %w", err)
	}
	if f.simulated {
		listener, err = net.ListenTCP("tcp", address)
		return listener, false, err
	}
	listeners, done, err := listenOrDelegate(inv, f.network, f.docker, []netip.AddrPort{address.AddrPort()})
	if done || err != nil {
		return nil, done, err
	}
	return listeners[0], false, nil
}

// observer returns a function that writes new versions of tasks to stderr and to the file of
// -events without blocking.
func (f *serveFlags) observer(ctx context.Context, inv *cli.Invocation) (observe func(shapes.Task, time.Time), closeFile func(), err error) {
	events, closeFile := io.Discard, func() {}
	if f.events != "" {
		if events, closeFile, err = appendLines(ctx, f.events, inv.Log); err != nil {
			return nil, nil, fmt.Errorf("-events: %w", err)
		}
	}
	return func(t shapes.Task, at time.Time) {
		event, err := control.Event(t, at)
		if err != nil {
			inv.Log.Warn("event was not written", logkey.TaskARN, t.TaskARN, logkey.Error, err)
		} else {
			_, _ = events.Write(append(event, '\n'))
		}
		if !f.json {
			fmt.Fprintln(inv.Stderr, eventLine(t, at))
		}
	}, closeFile, nil
}

// eventLine formats a new version of a task.
func eventLine(t shapes.Task, at time.Time) string {
	line := fmt.Sprintf("%s %s %s %s", at.Format(time.TimeOnly), t.Revision(), t.ID(), t.LastStatus)
	if t.DesiredStatus != t.LastStatus {
		line += ", desired " + t.DesiredStatus
	}
	if t.StoppedReason != "" {
		line += ": " + t.StoppedReason
	}
	return line
}

// print writes the exports for a shell, or as an object.
func (f *serveFlags) print(out io.Writer, variables []string) error {
	object, text := map[string]string{}, "unset AWS_SESSION_TOKEN AWS_PROFILE\n"
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		object[name] = value
		text += fmt.Sprintf("export %s='%s'\n", name, value)
	}
	if f.json {
		return writeJSON(out, object)
	}
	_, err := io.WriteString(out, text)
	return err
}

// usual is long enough to see the statuses of tasks.
var usual = simulated.Timing{
	Attach: time.Second, Pull: time.Second, Start: time.Second / 2, Stop: time.Second / 2, Detach: time.Second,
	Healthy: controlplane.HealthyAfter,
}

// duration is one part of a flag that has several.
type duration struct {
	name string
	to   *time.Duration
}

// durations declares a flag name=D,name=D. Durations that it does not name keep their values.
func durations(fs *flag.FlagSet, name, usage string, known ...duration) {
	fs.Func(name, usage, func(s string) error { return setDurations(s, known) })
}

func setDurations(s string, known []duration) error {
	want := []string{}
	byName := map[string]*time.Duration{}
	for _, d := range known {
		want, byName[d.name] = append(want, d.name+"=D"), d.to
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		to := byName[name]
		if to == nil {
			return fmt.Errorf("want %s or some of them, got %q", strings.Join(want, ","), part)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%s: want a duration such as 2s, got %q", name, value)
		}
		*to = d
	}
	return nil
}
