package subcommand

import (
	"context"
	"errors"
	"flag"
	"net"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// defaultInterval is how long the controller pauses after a pass, as in 0.6.
const defaultInterval = 10 * time.Second

func aclControllerCommand() cli.Command {
	var f controllerFlags
	return cli.Command{
		Synopsis: "Set up Consul's ACLs for a cluster, and clean up after dead tasks",
		Usage:    "acl-controller [flags]",
		Help: `
Runs in a task of the ECS cluster, as an ECS service; one is enough, and of two
or more one leads while the others wait. It creates, and corrects when they change, the
auth methods by which the cluster's tasks log in to Consul, their binding rules,
the clients' role and policy and the anonymous token's policy. Then it looks for
tokens, services and nodes of tasks that have ended, and removes them: only with
proof, which it logs. A task that ECS shows, or may show, keeps everything.

The token of CONSUL_HTTP_TOKEN needs:
  acl = "write"
  agent_prefix "" { policy = "read" }
  key_prefix "consul-ecs/" { policy = "write" }
  session_prefix "" { policy = "write" }
  node_prefix "" { policy = "write" }
  service_prefix "" { policy = "write" }
  operator = "write"        (with -partitions-enabled)
and the task role ecs:ListTasks and ecs:DescribeTasks on the cluster.

It retries without limit while Consul or AWS is unavailable. On TERM or INT it ends
within 5 s, between two deletions, and another controller leads at once. The exit
code is 0 then; 1 for a usage error; 2 when Consul refuses the token: the log names
the ACL rule that is missing; 3 when the task metadata cannot be read.

Environment:
  CONSUL_HTTP_ADDR and others    the Consul servers
  CONSUL_HTTP_TOKEN              the token, or a file's in CONSUL_HTTP_TOKEN_FILE
  CONSUL_CACERT_PEM              CA certificates of the servers, as text
  ECS_CONTAINER_METADATA_URI_V4  set by ECS, for the cluster
  AWS_REGION and the rest        the AWS SDK's; the region is the cluster's

Example:
  $ CONSUL_HTTP_ADDR=https://consul.example.com:8501 CONSUL_HTTP_TOKEN=... \
      consul-ecs acl-controller -metrics-addr :9102`,
		Flags: f.declare,
		Run: service(func(ctx context.Context, inv *cli.Invocation) error {
			return f.run(ctx, inv, controllerVariant{
				wanted: setup.Agent, leftovers: agentLeftovers(), rolePath: "-iam-role-path",
				consul: consulOptions(inv),
			})
		}),
	}
}

// controllerFlags are the options of a controller, those of its configuration included.
type controllerFlags struct {
	sharedFlags
	rolePath             string
	whole                bool
	cluster, metricsAddr string
	interval             time.Duration
	level                string
	json                 bool
}

func (f *controllerFlags) declare(fs *flag.FlagSet) {
	f.sharedFlags.declare(fs)
	f.declareOperation(fs)
	fs.StringVar(&f.rolePath, "iam-role-path", setup.DefaultRolePath, "`path` of the IAM roles that may log in")
	logLevelFlag(fs, &f.level)
	fs.BoolVar(&f.json, "log-json", false, "log as JSON")
}

// declareOperation declares what no configuration has.
func (f *controllerFlags) declareOperation(fs *flag.FlagSet) {
	fs.BoolVar(&f.whole, "trust-whole-account", false, "let every IAM role of the account log in, instead of those of the role path")
	fs.StringVar(&f.cluster, "cluster", "", "`ARN` of the ECS cluster; required outside of its tasks (default the task's cluster)")
	fs.StringVar(&f.metricsAddr, "metrics-addr", "", "serve /metrics and /healthz at this `address`, host:port or :port (default not at all)")
	fs.DurationVar(&f.interval, "interval", defaultInterval, "pause between passes while there is something to do; up to three times as long otherwise")
}

// anyCluster stands for the cluster until it is known.
const anyCluster = "arn:aws:ecs:us-east-1:000000000000:cluster/any"

// check returns every mistake that can be found without a request.
func (f *controllerFlags) check(inv *cli.Invocation, v controllerVariant) error {
	_, roleErr := setup.Principal(anyCluster, f.rolePath, f.whole)
	_, err := consulutil.NewClient(v.consul)
	return errors.Join(inv.UseLogger(f.level, f.json), f.checkOperation(inv),
		mistake(roleErr != nil, "%s: %w", v.rolePath, roleErr), mistake(err != nil, "%w", err))
}

// checkOperation returns the mistakes that do not depend on a configuration.
func (f *controllerFlags) checkOperation(inv *cli.Invocation) error {
	_, _, addrErr := net.SplitHostPort(f.metricsAddr)
	return errors.Join(cli.NoArgs(inv), f.sharedFlags.check(), f.checkCluster(inv),
		mistake(f.interval < time.Second || f.interval > time.Hour, "-interval %s: want 1s to 1h", f.interval),
		mistake(f.metricsAddr != "" && addrErr != nil, "-metrics-addr %q: want host:port or :port", f.metricsAddr))
}

// checkCluster checks that the flag or this task names a cluster.
func (f *controllerFlags) checkCluster(inv *cli.Invocation) error {
	switch {
	case f.cluster != "":
		_, err := awsutil.ParseCluster(f.cluster)
		return mistake(err != nil, "-cluster: %w", err)
	case inv.Getenv(awsutil.MetadataEnvVar) == "":
		return exit.Usagef("%s is not set: run this in a task of the ECS cluster, or give -cluster", awsutil.MetadataEnvVar)
	}
	_, err := metadataClient(inv)
	return err
}

// consulTimeout is for a list of all tokens: twenty thousand are 15 MB.
const consulTimeout = time.Minute

// consulOptions are those of commands beside the Consul servers.
func consulOptions(inv *cli.Invocation) consulutil.Options {
	return consulutil.Options{CAPEM: strings.TrimSpace(inv.Getenv("CONSUL_CACERT_PEM")), Timeout: consulTimeout}
}
