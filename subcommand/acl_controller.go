package subcommand

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
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
auth methods by which the cluster's tasks log in to Consul, their binding rules, and
the clients' role and policy. Then it looks for tokens, services and nodes of tasks that
have ended, and removes them: only with proof, which it logs. A task that ECS shows, or
may show, keeps everything. Requests without a token get no rights unless
-anonymous-read asks for them.

The token of CONSUL_HTTP_TOKEN needs:
  acl = "write"
  key_prefix "consul-ecs/" { policy = "write" }
  session_prefix "" { policy = "write" }
  node_prefix "" { policy = "write" }
  service_prefix "" { policy = "write" }
  agent_prefix "" { policy = "read" }    (with -anonymous-read)
  operator = "write"                     (with -partitions-enabled)
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
	shared               sharedFlags
	rolePath             string
	whole, anonymous     bool
	ttl                  time.Duration
	forceTTL             bool
	cluster, metricsAddr string
	interval             time.Duration
	level                string
	json                 bool
}

func (f *controllerFlags) declare(fs *flag.FlagSet) {
	f.shared.declare(fs)
	f.declareOperation(fs)
	fs.StringVar(&f.rolePath, "iam-role-path", setup.DefaultRolePath, "`path` of the IAM roles that may log in")
	logLevelFlag(fs, &f.level)
	fs.BoolVar(&f.json, "log-json", false, "log as JSON")
}

// declareOperation declares what no configuration has.
func (f *controllerFlags) declareOperation(fs *flag.FlagSet) {
	fs.BoolVar(&f.whole, "trust-whole-account", false,
		"let every IAM role of the account log in, instead of those of the role path")
	fs.BoolVar(&f.anonymous, "anonymous-read", false, "let requests without a token read all services and nodes")
	fs.DurationVar(&f.ttl, "token-ttl", 0,
		"after what time tokens of the auth methods expire, 1m to 24h (default never)")
	fs.BoolVar(&f.forceTTL, "token-ttl-force", false,
		"set -token-ttl also while tasks are running that do not replace their tokens")
	fs.StringVar(&f.cluster, "cluster", "",
		"`ARN` of the ECS cluster; required outside of its tasks (default the task's cluster)")
	fs.StringVar(&f.metricsAddr, "metrics-addr", "",
		"serve /metrics and /healthz at this `address`, host:port or :port (default not at all)")
	fs.DurationVar(&f.interval, "interval", defaultInterval,
		"pause between passes while there is something to do; up to three times as long otherwise")
}

// anyCluster stands for the cluster until it is known.
const anyCluster = "arn:aws:ecs:us-east-1:000000000000:cluster/any"

// check returns every mistake that can be found without a request.
func (f *controllerFlags) check(inv *cli.Invocation, v controllerVariant) error {
	_, roleErr := setup.Principal(anyCluster, f.rolePath, f.whole)
	_, err := consulutil.NewClient(v.consul)
	return errors.Join(inv.UseLogger(f.level, f.json), f.checkOperation(inv),
		usageErrorIf(roleErr != nil, "%s: %w", v.rolePath, roleErr), usageErrorIf(err != nil, "%w", err))
}

// checkOperation returns the mistakes that do not depend on a configuration.
func (f *controllerFlags) checkOperation(inv *cli.Invocation) error {
	_, _, addrErr := net.SplitHostPort(f.metricsAddr)
	ttlErr := setup.CheckTokenTTL(f.ttl)
	return errors.Join(cli.NoArgs(inv), f.shared.check(), f.checkCluster(inv),
		usageErrorIf(f.interval < time.Second || f.interval > time.Hour, "-interval %s: want 1s to 1h", f.interval),
		usageErrorIf(ttlErr != nil, "-token-ttl: %w", ttlErr),
		usageErrorIf(f.forceTTL && f.ttl == 0, "-token-ttl-force has no effect without -token-ttl"),
		usageErrorIf(f.metricsAddr != "" && addrErr != nil, "-metrics-addr %q: want host:port or :port", f.metricsAddr))
}

// checkCluster checks that the flag or this task names a cluster.
func (f *controllerFlags) checkCluster(inv *cli.Invocation) error {
	switch {
	case f.cluster != "":
		_, err := awsutil.ParseCluster(f.cluster)
		return usageErrorIf(err != nil, "-cluster: %w", err)
	case inv.Getenv(awsutil.MetadataEnvVar) == "":
		return exit.Usagef("%s is not set: run this in a task of the ECS cluster, or give -cluster",
			awsutil.MetadataEnvVar)
	}
	_, err := metadataClient(inv)
	return err
}

// controllerAgent names the controller to AWS, as in 0.6.
const controllerAgent = "consul-ecs-controller"

// httpLimit bounds a request for metrics.
const httpLimit = 10 * time.Second

// controllerVariant is what the controllers of the two generations differ in.
type controllerVariant struct {
	wanted func(setup.Options) (setup.State, error)
	// leftovers are what tasks leave.
	leftovers controller.Leftovers
	// rolePath is how users call the option.
	rolePath string
	// consul reaches the servers.
	consul consulutil.Options
}

func (f *controllerFlags) run(ctx context.Context, inv *cli.Invocation, v controllerVariant) error {
	if err := f.check(inv, v); err != nil {
		return err
	}
	listener, err := f.listen()
	if err != nil {
		return err
	}
	at, err := locate(ctx, inv, f.cluster)
	if err != nil {
		return err
	}
	inv.Log = inv.Log.With(logkey.ClusterARN, at.cluster.ARN)
	c, err := f.controller(ctx, inv, v, at)
	if err != nil {
		return err
	}
	if listener != nil {
		inv.Log.Info("serving metrics", logkey.Address, listener.Addr().String())
		defer serve(listener, inv.Log, &http.Server{Handler: c.Handler(), ReadHeaderTimeout: httpLimit,
			WriteTimeout: httpLimit})()
	}
	return c.Run(ctx)
}

// listen takes the port before anything is done; nil without -metrics-addr.
func (f *controllerFlags) listen() (net.Listener, error) {
	if f.metricsAddr == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", f.metricsAddr)
	if err != nil {
		return nil, exit.Usagef("-metrics-addr: %w", err)
	}
	return listener, nil
}

// controller wires one.
func (f *controllerFlags) controller(
	ctx context.Context, inv *cli.Invocation, v controllerVariant, at controllerIdentity,
) (*controller.Controller, error) {
	state, err := v.wanted(setup.Options{
		Cluster: at.cluster.ARN, RolePath: f.rolePath, WholeAccount: f.whole, Partition: f.shared.partition,
		AnonymousRead: f.anonymous, TokenTTL: f.ttl, ForceTokenTTL: f.forceTTL, Address: at.address,
	})
	if err != nil {
		return nil, err
	}
	metrics := controller.NewMetrics(cli.Version())
	v.consul.Wrap = metrics.Transport
	client, err := consulutil.NewClient(v.consul)
	if err != nil {
		return nil, err
	}
	lock, err := f.shared.lock(at, state.Name, consulutil.LockOptions{Consul: v.consul, Log: inv.Log})
	if err != nil {
		return nil, err
	}
	tasks, err := ecsReader(ctx, at.cluster, f.shared.rate)
	if err != nil {
		return nil, err
	}
	s := &setup.Setup{Client: client, Wanted: state, Log: inv.Log}
	return controller.New(controller.Options{
		Interval: f.interval, Rate: f.shared.rate,
		Lock:  lock,
		Setup: s,
		Cleaner: controller.NewCleaner(controller.CleanerOptions{
			Consul: client, ECS: tasks, Cluster: at.cluster, Partition: f.shared.partition, Log: inv.Log,
			Leftovers:        v.leftovers,
			EnsureNamespaces: s.EnsureNamespaces,
		}),
		Metrics: metrics,
		Log:     inv.Log,
	}), nil
}
