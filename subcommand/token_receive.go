package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	brokerEnv      = "CONSUL_ECS_BROKER_ADDR"
	brokerCAPEMEnv = "CONSUL_ECS_BROKER_CACERT_PEM"
	vaultAddrEnv   = "VAULT_ADDR"
)

const tokenReceiveHelp = `
Obtains a Consul or Vault token for the application of this task from the token broker
(consul-ecs token-broker), and writes it to -token-file. The task needs no credentials:
the broker asks ECS about the task, and pushes a sealed single-use handle to the task's
address, which this command redeems.

The callback port is open from before the request until the token is written. It answers
a push with 200 when the token is in the file, 409 while the task has a valid token, 400
when the push is malformed, 403 when it is not for a request of this task, 502 when the
handle is lost or the token was not stored, and 503 while the handle can still be
redeemed. Publish it through no load balancer; the broker's security group needs access
to it.

The token file has mode 0600. -token-reader lets another user read it, for an application
that does not run as the user of this container. Beside it is <token-file>.json with the
token's accessor, expiry and hash. A restarted container takes over a token of its task
that is still valid, and requests nothing. Run one receiver in a task: a task has one
token, and a second receiver with the same callback port takes the first one's away.

By default the command ends when the token is written: let the application depend on its
SUCCESS, and make the container non-essential. With -stay it keeps running and replaces
the token at 2/3 of its TTL, or renews it at Vault when VAULT_ADDR is set; an outage of
the broker or of the backend is waited out. Once a minute it asks Consul or Vault, if the
environment has the address, whether the token still exists, and requests another one if
it was revoked. The application must read the file again within the overlap: a replaced
token stays valid for 10 s, or a tenth of its TTL if that is shorter. After TERM, -stay
waits until the application containers have stopped, removes the files and revokes the
token, at the latest 12 s before the stop timeout ends.

Tokens of the backend consul-login are revoked by a logout when CONSUL_HTTP_ADDR is set,
those of vault when VAULT_ADDR is set. All others are revoked by the broker, on request.

Requests are repeated until -timeout, with the pauses that the broker asks for: while ECS
does not know the task (404) for one minute, while the broker is busy or unavailable (425,
429, 5xx, no connection) always. Any other refusal ends the command.

Exit codes: 0 when the token is written, or was revoked after TERM; 1 for wrong usage or
configuration; 2 when the broker refuses, or its certificate does not verify; 3 when time
ran out, or TERM arrived before there was a token.

Environment:
  ECS_CONTAINER_METADATA_URI_V4  task metadata, set by ECS
  CONSUL_ECS_BROKER_ADDR         as -broker
  CONSUL_ECS_BROKER_CACERT_PEM   CA certificates of the broker, as text
  CONSUL_HTTP_ADDR and the rest  Consul, to wait until it knows a new token and to log out
  CONSUL_HTTPS_CACERT_PEM        CA certificates of CONSUL_HTTP_ADDR, as text
  VAULT_ADDR, VAULT_CACERT and VAULT_NAMESPACE
                                 Vault, to renew and revoke; https, or http on loopback
  CONSUL_ECS_IGNORE_CONTAINERS   as -ignore-containers; both apply

Example:
  $ consul-ecs token-receive -stay -broker https://token-broker.internal:8443 \
      -broker-ca-file /consul/broker-ca.pem -token-file /consul/app-token -token-reader 1000`

func tokenReceiveCommand() cli.Command {
	var f tokenReceiveFlags
	return cli.Command{
		Synopsis: "Obtain a token for the application from the token broker",
		Usage:    "token-receive -broker URL -token-file FILE [flags]",
		Help:     tokenReceiveHelp,
		Flags:    f.declare,
		Run:      untilSignal(f.run),
	}
}

type tokenReceiveFlags struct {
	receiver                      receiver.Options
	broker, caFile, reader, level string
}

func (f *tokenReceiveFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.broker, "broker", "",
		"`URL` of the token broker: https, or http on a loopback address (required here or in the environment)")
	fs.StringVar(&f.caFile, "broker-ca-file", "",
		"`file` of the CA certificates, PEM, that verify the broker (default the system's)")
	fs.StringVar(&f.receiver.File, "token-file", "",
		"`file` for the token, in a directory that the application shares (required)")
	fs.StringVar(&f.reader, "token-reader", "", "`UID` that may read the token file, too")
	fs.IntVar(&f.receiver.Port, "callback-port", receiver.DefaultPort, "`port` to which the broker pushes")
	fs.DurationVar(&f.receiver.Limit, "timeout", 5*time.Minute, "give up after this `duration` without a first token")
	fs.BoolVar(&f.receiver.Stay, "stay", false, "keep running, and replace or renew the token before it expires")
	stopTimeoutFlag(fs, &f.receiver.StopTimeout)
	ignoreContainersFlag(fs, &f.receiver.Ignore,
		"`names` of containers that -stay does not wait for after TERM, such as log routers, and this one if the metadata endpoint does not name it")
	logLevelFlag(fs, &f.level)
}

func (f *tokenReceiveFlags) run(ctx context.Context, inv *cli.Invocation) error {
	mistakes := f.check(inv)
	client, err := f.client(inv)
	mistakes = errors.Join(mistakes, err)
	actions, err := tokenActions(inv)
	if err = errors.Join(mistakes, err); err != nil {
		return &exit.UsageError{Err: err}
	}
	limitRuntime(inv, healthSyncGCPercent)
	metadata, err := metadataClient(inv)
	if err != nil {
		return err
	}
	return receiver.Run(ctx, f.receiver, receiver.Deps{
		FirstTask: func(ctx context.Context, limit time.Duration) (workload.Task, error) {
			return awsutil.FirstTask(ctx, inv.Log, metadata.Task, limit)
		},
		Self:    metadata.Self,
		Client:  client,
		Actions: actions,
		Listen: func(ctx context.Context, port int) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
		},
		AwaitStopped: func(ctx context.Context, which func(workload.Task) []workload.Container) ([]string, error) {
			return awsutil.AwaitStopped(ctx, inv.Log, metadata.Task, awsutil.AwaitPause, which)
		},
		Log: inv.Log,
	})
}

// check returns every mistake in the flags, but for those of the broker.
func (f *tokenReceiveFlags) check(inv *cli.Invocation) error {
	var readerErr error
	if f.reader != "" {
		uid, err := strconv.ParseUint(f.reader, 10, 32)
		readerErr = usageErrorIf(err != nil || uid == math.MaxUint32, "-token-reader %q: want a numeric user ID",
			f.reader) // the kernel's for none
		f.receiver.Reader = new(uint32(uid))
	}
	return errors.Join(cli.NoArgs(inv), inv.UseLogger(f.level, false), checkStopTimeout(f.receiver.StopTimeout),
		addIgnoredContainers(inv, &f.receiver.Ignore),
		usageErrorIf(f.receiver.File == "", "-token-file is required"),
		usageErrorIf(f.receiver.Port < 1 || f.receiver.Port > 65535, "-callback-port %d: want 1 to 65535",
			f.receiver.Port),
		usageErrorIf(f.receiver.Limit <= 0, "-timeout %s: want more than 0", f.receiver.Limit), readerErr)
}

func (f *tokenReceiveFlags) client(inv *cli.Invocation) (*receiver.Client, error) {
	address := cmp.Or(f.broker, inv.Getenv(brokerEnv))
	if address == "" {
		return nil, fmt.Errorf("-broker or %s is required", brokerEnv)
	}
	ca := []byte(strings.TrimSpace(inv.Getenv(brokerCAPEMEnv)))
	if f.caFile != "" {
		var err error
		if ca, err = os.ReadFile(f.caFile); err != nil {
			return nil, fmt.Errorf("-broker-ca-file: %w", err)
		}
	}
	return receiver.NewClient(receiver.ClientOptions{Address: address, CAPEM: ca})
}
