package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

type visitFlags struct{ location location }

func visitCommand() cli.Command {
	f := &visitFlags{}
	return cli.Command{
		Synopsis: "Run a program of this machine in the cluster's network",
		Usage:    "visit [flags] [--] COMMAND [ARGUMENT...]",
		Help: `
Runs a program of this machine, with its files, working directory, environment and
standard streams, in the network of a run's cluster, with an address there. These names
are resolved there, for running tasks:

  web                      a task, a family or an ECS service of the run's cluster
  web.CLUSTER.local        the same of any cluster
  ip-10-42-0-4.ec2.internal

A service resolves to those tasks whose essential containers pass their health checks.

The environment has AWS_ENDPOINT_URL_ECS, _STS and _IAM, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_DEFAULT_REGION of the run, and, where it has a
Consul server, CONSUL_HTTP_ADDR and CONSUL_HTTP_TOKEN, which has all permissions. Proxy
variables are removed. Nothing outside of the cluster can be reached, including 127.0.0.1
of this machine, except with -network host.

SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on. The program is killed when the run ends.

Exit status: the program's; 128+n after signal n; 127 if there is no such program; 126 if
it cannot be executed; 125 after any other error.

Examples:
  $ localecs visit -- curl -fsS http://web:8080/
  $ localecs visit go test ./e2e/...
  $ localecs visit aws ecs list-tasks`,
		Flags: func(fs *flag.FlagSet) { f.location.add(fs) },
		Run:   f.run,
	}
}

func (f *visitFlags) run(ctx context.Context, inv *cli.Invocation) error {
	code, err := f.visit(ctx, inv)
	return failed(inv, "visit", code, err)
}

func (f *visitFlags) visit(ctx context.Context, inv *cli.Invocation) (code int, err error) {
	if len(inv.Args) == 0 {
		return runtime.CodeFailed, errors.New("want a command to run")
	}
	path, err := program(inv.Args[0])
	if err != nil {
		return runtime.Code(err), err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return runtime.CodeFailed, fmt.Errorf("find the working directory: %w", err)
	}
	client, err := f.location.dial(ctx)
	if err != nil {
		return runtime.CodeFailed, err
	}
	io, err := openStreams(inv, streamOptions{Own: true})
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer io.Close()
	return client.Visit(ctx, control.Request{
		Argv: inv.Args, Path: path, Directory: cwd, Env: os.Environ(), Umask: umask(),
	}, io.Session)
}

// program finds a program as shells do.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s: %w on $PATH", name, os.ErrNotExist)
	}
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}
	return filepath.Abs(path)
}

// umask returns that of this process.
func umask() int {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return mask
}
