package subcommand

import (
	"context"
	"flag"
	"net"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// dialTimeout stays below the 5 s after which ECS kills a health check, so
// that the reason still reaches the container's health output.
const dialTimeout = 4 * time.Second

func netDialCommand() cli.Command {
	var timeout time.Duration
	return cli.Command{
		Synopsis: "Check that a TCP port accepts connections",
		Usage:    "net-dial [flags] <host>:<port>",
		Help: `
Opens a TCP connection and closes it. Exit code 0 when that worked, 2 when it
did not, with the reason on stderr. Intended for ECS health checks in
images without a shell.

Example:
  $ consul-ecs net-dial 127.0.0.1:20000`,
		Flags: func(fs *flag.FlagSet) {
			fs.DurationVar(&timeout, "timeout", dialTimeout, "time the connection may take")
		},
		Run: func(ctx context.Context, inv *cli.Invocation) error {
			if len(inv.Args) != 1 {
				return exit.Usagef("want exactly one argument <host>:<port>, got %d", len(inv.Args))
			}
			if timeout <= 0 {
				return exit.Usagef("-timeout %s: want more than 0", timeout)
			}
			dialer := net.Dialer{Timeout: timeout}
			conn, err := dialer.DialContext(ctx, "tcp", inv.Args[0])
			if err != nil {
				return &exit.RefusedError{Err: err}
			}
			conn.Close() // the connection has proved what it was made for
			return nil
		},
	}
}
