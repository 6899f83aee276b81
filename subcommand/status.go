package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const statusHelp = `
Shows each mesh service and gateway of an ECS cluster in a line: how many tasks ECS
wants and runs, how many instances Consul has and how many of them pass all checks,
their ACL tokens and sessions, and the versions of consul-ecs and Envoy that serve them.
A line whose numbers do not agree ends with what disagrees. The controllers that lead
are named first. A deployment that is in progress disagrees for a while.

Without AWS credentials it shows what Consul knows, and says so.

-watch looks again until TERM or Ctrl-C: it repaints a terminal, and prints the lines
that have changed elsewhere. The exit status is that of the last look.

The Consul token needs node_prefix "" and service_prefix "" "read". Tokens need
acl = "read", sessions session_prefix "" "read", and the leaders key_prefix
"consul-ecs/" "read"; without these they are shown as unknown.
AWS: ecs:ListServices, ecs:DescribeServices, ecs:DescribeTasks and
ecs:DescribeTaskDefinition.

Exit status: 0 all agree; 1 usage; 2 something disagrees, or Consul refuses; 3 unknown.

Environment:
  CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's, CONSUL_CACERT_PEM
  AWS_PROFILE and the rest of the AWS SDK's; the region is the cluster's
  ECS_CONTAINER_METADATA_URI_V4 names the cluster inside a task

Example:
  $ consul-ecs status -cluster arn:aws:ecs:us-east-1:123456789012:cluster/shop
  arn:aws:ecs:us-east-1:123456789012:cluster/shop
  controller: arn:aws:ecs:us-east-1:123456789012:task/shop/9d3c… leads
  SERVICE  DESIRED  RUNNING  REGISTERED  PASSING  TOKENS  SESSIONS  CONSUL-ECS  ENVOY
  api      3        3        3           3        3       3         v1.0.0      1.40.0
  web      3        3        2           2        2       2         v1.0.0      1.40.0  3 running, 2 registered
  2 services, 1 disagrees`

// statusRate is the default budget of ECS calls a second: services have their own limit of 20, with bursts of 100.
const statusRate = 10

func statusCommand() cli.Command {
	var f statusFlags
	return cli.Command{
		Synopsis: "Show what ECS runs and what Consul has of it, service by service",
		Usage:    "status [flags]",
		Help:     statusHelp,
		Flags:    f.declare,
		Run:      untilSignal(f.run),
	}
}

type statusFlags struct {
	shared             sharedFlags
	clusters, services []string
	json, watch        bool
	interval           time.Duration
	level              string
}

func (f *statusFlags) declare(fs *flag.FlagSet) {
	f.shared.declarePartition(fs)
	f.shared.declareRate(fs, statusRate)
	fs.Func("cluster", "`ARN` of an ECS cluster; may be repeated (default that of the task it runs in)",
		appendTo(&f.clusters))
	fs.Func("service", "`name` of a service or gateway in Consul; may be repeated (default all)", appendTo(&f.services))
	fs.BoolVar(&f.json, "json", false, "print JSON, one object a line for each cluster and look")
	fs.BoolVar(&f.watch, "watch", false, "look again until TERM or Ctrl-C")
	fs.DurationVar(&f.interval, "interval", 5*time.Second, "pause between two looks of -watch, at least 1s")
	fs.StringVar(&f.level, "log-level", "", "TRACE, DEBUG, INFO, WARN or ERROR (default WARN)")
}

// check finds every mistake that can be found without a request.
func (f *statusFlags) check(inv *cli.Invocation) error {
	return errors.Join(cli.NoArgs(inv), inv.UseLogger(cmp.Or(f.level, "WARN"), f.json), f.shared.check(),
		checkClusters(inv, f.clusters),
		usageErrorIf(f.interval < time.Second, "-interval %s: want 1s or more", f.interval))
}

func (f *statusFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := f.check(inv); err != nil {
		return err
	}
	var readers []*controller.StatusReader
	for _, arn := range orTasks(f.clusters) {
		reader, err := f.reader(ctx, inv, arn)
		if err != nil {
			return err
		}
		readers = append(readers, reader)
	}
	screen := newStatusScreen(inv.Stdout, f.watch, f.json)
	for {
		start := time.Now()
		statuses, err := looks(ctx, readers)
		if ctx.Err() == nil || !f.watch {
			if printErr := screen.show(statuses, start); printErr != nil {
				return printErr
			}
		}
		calls := 0
		for _, s := range statuses {
			calls += s.AWS.Calls
		}
		if !f.watch {
			return statusResult(statuses, err)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(inv.Stderr, "%s %v\n", start.Format(time.TimeOnly), err)
		}
		// Half of the budget of ECS calls is left to others.
		pause := max(f.interval, time.Duration(2*float64(calls)/f.shared.rate*float64(time.Second))-time.Since(start))
		if retry.Sleep(ctx, pause) != nil {
			return statusResult(statuses, err)
		}
	}
}

// looks looks at each cluster, and returns those that could be looked at.
func looks(ctx context.Context, readers []*controller.StatusReader) ([]controller.ClusterStatus, error) {
	var statuses []controller.ClusterStatus
	var errs []error
	for _, r := range readers {
		s, err := r.Look(ctx)
		if err == nil {
			statuses = append(statuses, s)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.Cluster, err))
	}
	return statuses, errors.Join(errs...)
}

// statusResult returns the error with the exit code of what was found.
func statusResult(statuses []controller.ClusterStatus, err error) error {
	if err != nil {
		return &exit.Plain{Err: refusal(err)}
	}
	code := exit.CodeOK
	for _, s := range statuses {
		switch {
		case !s.Agrees():
			return &exit.CodeError{Code: exit.CodeRefused}
		case s.Partial:
			code = exit.CodeUnknown
		}
	}
	if code != exit.CodeOK {
		return &exit.CodeError{Code: code}
	}
	return nil
}

// reader returns what reads the cluster of that ARN, or the task's.
func (f *statusFlags) reader(ctx context.Context, inv *cli.Invocation, arn string) (*controller.StatusReader, error) {
	at, err := locate(ctx, inv, arn)
	if err != nil {
		return nil, err
	}
	client, err := consulutil.NewClient(consulOptions(inv))
	if err != nil {
		return nil, err
	}
	tasks, err := ecsReader(ctx, at.cluster, f.shared.rate)
	if err != nil {
		return nil, err
	}
	return controller.NewStatusReader(controller.CleanerOptions{
		Consul: client, Cluster: at.cluster, Partition: f.shared.partition, Log: inv.Log, Leftovers: agentLeftovers(),
	}, tasks, f.services), nil
}
