package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/compose"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// endpointsFlags are the flags of `localecs endpoints`.
type endpointsFlags struct {
	listen, aws, awsURL     string
	project, setting, await string
	level                   string
	ready                   bool
	within                  time.Duration
}

func endpoints() cli.Command {
	f := &endpointsFlags{}
	return cli.Command{
		Synopsis: "Serve task metadata, credentials, STS, IAM and ECS to a compose project",
		Usage:    "endpoints [flags] NAME=FILE...",
		Help: `
Serves the endpoints of ECS to the containers of a docker compose project whose file
localecs compose has written: task metadata, statistics, credentials and task
protection at -listen; STS, IAM, and ListTasks and DescribeTasks of ECS at -aws-listen.
NAME=FILE are the tasks and their definitions, as in that file, which runs this command
as its service endpoints. The states of containers come from the Docker engine, whose
socket is needed.

Each start of a task's first container, NAME, is a new task with a new ID. The desired
status of a task is STOPPED when an essential container has exited, or as soon as the
engine is asked to stop one of its containers, as docker compose stop does. In the first
case this command stops the task's other containers, each after those that depend on it.

With CONSUL_HTTP_ADDR it sets -aws-url in each auth method of type aws-iam in Consul that
has no address of STS and IAM; CONSUL_HTTP_TOKEN needs acl = "write".

With -await it serves nothing, but waits until tasks can log in to Consul by these auth
methods. With -ready it checks whether another process serves -listen, as a health check.

Environment:
  DOCKER_HOST          the engine (default unix:///var/run/docker.sock)
  CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and others    a Consul server

Exit status: 0 after TERM or Ctrl-C, and if -await or -ready succeeds; 1 usage; 2 -ready:
-listen is not served; 3 the engine cannot be reached, or -await timed out after -within.

Example, outside of the project's containers:
  $ localecs endpoints -project shop -listen 127.0.0.1:8070 -aws-listen 127.0.0.1:8071 web=web.json
  $ curl http://127.0.0.1:8070/v4/web.app/task`,
		FlagsAnywhere: true,
		Flags:         f.declare,
		Run:           f.run,
	}
}

func (f *endpointsFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.listen, "listen", ":80", "`address` of task metadata and credentials")
	fs.StringVar(&f.aws, "aws-listen", fmt.Sprintf(":%d", compose.AWSPort), "`address` of STS, IAM and ECS")
	fs.StringVar(&f.awsURL, "aws-url", fmt.Sprintf("http://%s:%d", compose.EndpointsService, compose.AWSPort), "`URL` of -aws-listen for Consul servers, without a path")
	fs.StringVar(&f.project, "project", "", "`name` of the docker compose project (default that of the container in which this command runs)")
	fs.StringVar(&f.setting, "setting", "", "scenario `directory or file` with account, region, cluster and roles")
	fs.StringVar(&f.await, "await", "", "wait until logins by these auth methods work, `NAME,...`, and exit")
	fs.DurationVar(&f.within, "within", 3*time.Minute, "how long -await waits")
	fs.BoolVar(&f.ready, "ready", false, "check whether -listen is served, and exit")
	fs.StringVar(&f.level, "log-level", "INFO", "TRACE, DEBUG, INFO, WARN or ERROR")
}

func (f *endpointsFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := inv.UseLogger(f.level, false); err != nil {
		return &exit.UsageError{Err: err}
	}
	ctx, stop := cli.SignalContext(ctx, ends()...)
	defer stop()
	switch {
	case f.ready:
		return f.askReady(ctx)
	case f.await != "":
		return f.awaitLogins(ctx, inv)
	}
	err := f.serve(ctx, inv)
	if end, ok := errors.AsType[*exit.SignalError](err); ok && end != nil {
		return nil // the regular end
	}
	return err
}

// askReady implements -ready.
func (f *endpointsFlags) askReady(ctx context.Context) error {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return exit.Usagef("-listen %q: want host:port or :port", f.listen)
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return &exit.RefusedError{Err: err}
	}
	return conn.Close()
}

// awaitLogins implements -await.
func (f *endpointsFlags) awaitLogins(ctx context.Context, inv *cli.Invocation) error {
	client, err := consulutil.NewClient(consulutil.Options{Timeout: 10 * time.Second})
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	look, before := scenario.ConsulQuery{Client: client}, ""
	for {
		missing, err := look.Missing(ctx, strings.Split(f.await, ","))
		if err != nil {
			missing = err.Error()
		}
		if missing == "" {
			return nil
		}
		if missing != before && ctx.Err() == nil {
			inv.Log.Info("tasks cannot log in yet", logkey.Reason, missing)
			before = missing
		}
		if retry.Sleep(ctx, 250*time.Millisecond) != nil {
			if end, ok := errors.AsType[*exit.SignalError](context.Cause(ctx)); ok {
				return end
			}
			return fmt.Errorf("wait for logins: timed out after %s: %s", f.within, before)
		}
	}
}

// serve follows the project until ctx ends.
func (f *endpointsFlags) serve(ctx context.Context, inv *cli.Invocation) error {
	setting, definitions, err := f.read(inv)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	self, _ := os.Hostname() // a container's is its ID
	host := cmp.Or(inv.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")
	dock, err := compose.Dial(ctx, host, f.project, self)
	if err != nil {
		return err
	}
	defer dock.Close()
	store := iam.NewStore()
	for _, role := range setting.IdentityRoles() {
		store.PutRole(role)
	}
	cluster := cluster.ClusterFacts{Account: setting.AWS(), Name: setting.Cluster}
	a := compose.NewAgent(dock, compose.NewState(cluster, definitions), store, inv.Log)
	if err := a.Update(ctx); err != nil {
		return err
	}
	closeAll, err := f.listenAll(map[string]http.Handler{f.listen: a.TaskHandler(ctx, dock.Stats), f.aws: a.AWSHandler(setting.Region)})
	if err != nil {
		return err
	}
	var redirecting sync.WaitGroup
	if inv.Getenv("CONSUL_HTTP_ADDR") != "" {
		client, err := consulutil.NewClient(consulutil.Options{Timeout: 11 * time.Minute}) // longer than a blocking query
		if err != nil {
			return errors.Join(&exit.UsageError{Err: err}, closeAll())
		}
		redirecting.Go(func() { scenario.Redirect(ctx, client, f.awsURL) })
	}
	inv.Log.Info("serving", logkey.Address, f.listen, logkey.Tasks, len(definitions))
	a.Run(ctx)
	redirecting.Wait()
	return errors.Join(context.Cause(ctx), closeAll())
}

// read reads the arguments and files. The error has the mistakes of all of them.
func (f *endpointsFlags) read(inv *cli.Invocation) (*file.Scenario, []compose.FileTask, error) {
	setting, err := file.LoadSetting(f.setting)
	errs := []error{err}
	if len(inv.Args) == 0 {
		errs = append(errs, errors.New("want a task and its definition: localecs endpoints NAME=FILE"))
	}
	tasks, _, err := namedTasks(inv.Args)
	for _, t := range tasks {
		if role := t.Definition.TaskRoleARN; role != "" && setting != nil {
			t.Definition.TaskRoleARN = iam.RoleOf(role, setting.AWS()).ARN()
		}
	}
	return setting, tasks, errors.Join(append(errs, err)...)
}

// listenAll serves handlers by address.
func (f *endpointsFlags) listenAll(handlers map[string]http.Handler) (closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	for address, h := range handlers {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen: %w", err), closeAll())
		}
		closers = append(closers, metadata.Serve(l, h))
	}
	return closeAll, nil
}

func pause() cli.Command {
	return cli.Command{
		Synopsis: "Pause container: hold a task's network namespace until SIGTERM",
		Usage:    "pause",
		Help: `
Waits for TERM, or Ctrl-C. In the files of localecs compose it is a task's first
container, whose network namespace the others share.

Exit status: 0 after TERM, 1 usage.

Example:
  $ localecs pause`,
		Run: func(ctx context.Context, inv *cli.Invocation) error {
			if err := cli.NoArgs(inv); err != nil {
				return err
			}
			ctx, stop := cli.SignalContext(ctx, ends()...)
			defer stop()
			<-ctx.Done()
			return nil
		},
	}
}
