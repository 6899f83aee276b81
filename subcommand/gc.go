package subcommand

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const gcHelp = `
Finds what dead tasks left in Consul - ACL tokens, services with their proxies,
nodes - and shows the plan: what would be deleted, on which evidence, and which
tasks that do not run keep theirs, and why. It does once what acl-controller and
controller do continuously, and needs neither: for clusters that were deleted, or that
have no controller yet.

-apply takes the locks of the cluster's controllers; while one runs, it does nothing and
ends with 2.

A task is dead when ECS shows it as STOPPED. One that ECS does not know, by its own
ID, is dead when it is still unknown a minute later, and its newest token is five
minutes old; one without tokens, when it is still unknown after five minutes. gc waits
for that second check, and prints how long; -wait 0s leaves such tasks alone. All tasks
of a cluster that was deleted are unknown; once ECS has forgotten the cluster too,
create an empty one of its name first. Everything else stays: tasks that run or drain,
doubtful cases, and objects that consul-ecs did not make. Nodes go with the last
service on them, if their serfHealth check is critical.

The Consul token needs acl = "write" (a plan: "read"), node_prefix "" and
service_prefix "" "write" (a plan: "read"), and for -apply key_prefix "consul-ecs/"
and session_prefix "" "write". AWS: ecs:ListTasks and ecs:DescribeTasks,
for a cluster that was deleted ecs:DescribeClusters.

Exit status: 0 everything was examined (and deleted); 1 usage; 2 a controller leads, or
Consul refuses; 3 not everything could be examined or deleted. What was proven is shown,
and deleted, in any case.

Environment:
  CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's, CONSUL_CACERT_PEM
  AWS_PROFILE and the rest of the AWS SDK's; the region is the cluster's
  ECS_CONTAINER_METADATA_URI_V4 names the cluster inside a task

Example:
  $ consul-ecs gc -plan -cluster arn:aws:ecs:us-east-1:123456789012:cluster/shop
  arn:aws:ecs:us-east-1:123456789012:cluster/shop
  2f1e… dead: ECS shows the task as STOPPED since 2026-03-02T17:00:10Z (UserInitiated)
    service web-2f1e… on node ip-10-0-1-7
    token 3f2a1b0c-65de-5efd-423c-2502e13ae5e3 of iam-ecs-service-token
  77ab… stays: stopping, last status RUNNING (2 tokens, 2 services)
  2 to delete of 1 dead task; 1 task stays; 120 tasks run
  $ consul-ecs gc -apply -cluster arn:aws:ecs:us-east-1:123456789012:cluster/shop`

// gcWait is the longest that gc waits for a second look, by default.
const gcWait = 6 * time.Minute

func gcCommand() cli.Command {
	var f gcFlags
	return cli.Command{
		Synopsis: "Show or remove what dead tasks left in Consul, without a controller",
		Usage:    "gc -plan|-apply [flags]",
		Help:     gcHelp,
		Flags:    f.declare,
		Run:      untilSignal(f.run),
	}
}

type gcFlags struct {
	shared            sharedFlags
	plan, apply, json bool
	clusters          []string
	wait              time.Duration
	level             string
}

func (f *gcFlags) declare(fs *flag.FlagSet) {
	f.shared.declare(fs)
	fs.BoolVar(&f.plan, "plan", false, "show the plan and delete nothing")
	fs.BoolVar(&f.apply, "apply", false, "show the plan and apply it")
	fs.Func("cluster", "`ARN` of an ECS cluster; may be repeated (default that of the task it runs in)",
		appendTo(&f.clusters))
	fs.BoolVar(&f.json, "json", false,
		"print JSON, one object a line for each cluster: the plan, and with -apply another one that has what was "+
			"deleted and what failed")
	fs.DurationVar(&f.wait, "wait", gcWait,
		"maximum total time to wait for rechecks of tasks that ECS reports as MISSING")
	fs.StringVar(&f.level, "log-level", "",
		"TRACE, DEBUG, INFO, WARN or ERROR (default WARN: what is deleted is printed)")
}

// check finds every mistake that can be found without a request.
func (f *gcFlags) check(inv *cli.Invocation) error {
	return errors.Join(
		cli.NoArgs(inv), inv.UseLogger(cmp.Or(f.level, "WARN"), f.json),
		usageErrorIf(f.plan == f.apply, "exactly one of -plan, -apply is required"),
		checkClusters(inv, f.clusters),
		usageErrorIf(f.wait < 0, "-wait %s: want 0s or more", f.wait),
		f.shared.check())
}

func (f *gcFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := f.check(inv); err != nil {
		return err
	}
	clusters := orTasks(f.clusters)
	var errs []error
	for _, arn := range clusters {
		at, err := locate(ctx, inv, arn)
		if err == nil {
			err = f.cluster(ctx, inv, at)
		}
		if err != nil && len(clusters) > 1 {
			err = fmt.Errorf("%s: %w", arn, err)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx) // errors of what it cancelled add nothing
	}
	return &exit.Plain{Err: err}
}

// cluster looks at one cluster, below its lock if it may delete.
func (f *gcFlags) cluster(ctx context.Context, inv *cli.Invocation, at controllerIdentity) error {
	options := consulOptions(inv)
	client, err := consulutil.NewClient(options)
	if err != nil {
		return err
	}
	tasks, err := ecsReader(ctx, at.cluster, f.shared.rate)
	if err != nil {
		return err
	}
	c := controller.NewCleaner(controller.CleanerOptions{
		Consul: client, ECS: tasks, Cluster: at.cluster, Partition: f.shared.partition, Log: inv.Log,
		Leftovers: agentLeftovers(),
	})
	work := func(ctx context.Context) error { return f.collect(ctx, inv, c) }
	if f.plan {
		return refusal(work(ctx))
	}
	standby := func(holder string) error {
		return &exit.RefusedError{Err: fmt.Errorf("%s has a controller: %s leads and removes what dead tasks left; nothing was deleted", at.cluster.ARN, holder)}
	}
	for _, name := range []string{"", setup.AgentlessName} {
		lock, err := f.shared.lock(at, name, consulutil.LockOptions{Consul: options, Log: inv.Log})
		if err != nil {
			return err
		}
		locked := work
		work = func(ctx context.Context) error { return lock.Lead(ctx, standby, locked) }
	}
	return refusal(work(ctx))
}

// refusal gives what Consul refuses the exit code of refusals.
func refusal(err error) error {
	if status := consulutil.Status(err); status == http.StatusForbidden || status == http.StatusUnauthorized {
		return &exit.RefusedError{Err: err}
	}
	return err
}

// collect shows the plan, and carries it out if that is wanted.
func (f *gcFlags) collect(ctx context.Context, inv *cli.Invocation, c *controller.Cleaner) error {
	r, err := f.look(ctx, inv.Stderr, c.Look)
	if printErr := f.print(inv, &r, printPlan); printErr != nil {
		return printErr
	}
	if f.plan {
		return err
	}
	// Also when ctx has ended: nothing is deleted then, and the error reports it.
	err = errors.Join(err, c.Apply(ctx, &r))
	return errors.Join(err, f.print(inv, &r, printDone))
}

// look looks until nothing more is to be expected of another look, or -wait is
// over.
func (f *gcFlags) look(
	ctx context.Context, progress io.Writer, once func(context.Context) (controller.Report, error),
) (controller.Report, error) {
	end := time.Now().Add(f.wait)
	for {
		r, err := once(ctx)
		var wait time.Duration
		again := 0
		for _, k := range r.Kept {
			if k.Again > 0 && !time.Now().Add(k.Again).After(end) {
				again++
				wait = max(wait, k.Again)
			}
		}
		if err != nil || again == 0 {
			return r, err
		}
		wait = wait.Round(time.Second) + time.Second // Consul's Date header has seconds
		fmt.Fprintf(progress, "%s unknown to ECS: checking again in %s, at %s\n", count(again, "task is", "tasks are"),
			wait, time.Now().Add(wait).Format(time.TimeOnly))
		if retry.Sleep(ctx, wait) != nil {
			return r, context.Cause(ctx)
		}
	}
}

// print writes a report as text or as JSON.
func (f *gcFlags) print(inv *cli.Invocation, r *controller.Report, text func(io.Writer, *controller.Report)) error {
	if f.json {
		return writeJSON(inv.Stdout, r)
	}
	w := bufio.NewWriter(inv.Stdout)
	text(w, r)
	return w.Flush()
}

// printPlan writes what is to be deleted, task by task, each with its evidence;
// then what stays.
func printPlan(w io.Writer, r *controller.Report) {
	fmt.Fprintln(w, r.Cluster)
	byTask := map[string][]controller.Item{}
	var dead []string // in the plan's order
	for _, i := range r.Delete {
		if byTask[i.Task] == nil {
			dead = append(dead, i.Task)
		}
		byTask[i.Task] = append(byTask[i.Task], i)
	}
	for _, task := range dead {
		fmt.Fprintf(w, "%s dead: %s\n", task, byTask[task][0].Evidence)
		for _, i := range byTask[task] {
			fmt.Fprintf(w, "  %s\n", itemText(i))
		}
	}
	for _, k := range r.Kept {
		detail := ""
		if k.Detail != "" {
			detail = ", " + k.Detail
		}
		fmt.Fprintf(w, "%s stays: %s%s (%s, %s)\n", k.Task, k.Reason.Text(), detail, count(k.Tokens, "token", "tokens"),
			count(k.Services, "service", "services"))
	}
	reservation := ""
	if r.Partial {
		reservation = " (incomplete: not everything could be read)"
	}
	fmt.Fprintf(w, "%d to delete of %s; %s; %s%s\n", len(r.Delete), count(len(dead), "dead task", "dead tasks"),
		count(len(r.Kept), "task stays", "tasks stay"), count(r.Running, "task runs", "tasks run"), reservation)
}

// printDone writes what became of the plan.
func printDone(w io.Writer, r *controller.Report) {
	for _, i := range r.Deleted {
		if i.Kind == controller.KindNode { // not in the plan
			fmt.Fprintf(w, "%s\n  %s\n", i.Task, itemText(i))
		}
	}
	for _, failed := range r.Failed {
		fmt.Fprintf(w, "%s failed: %s: %s\n", failed.Task, itemText(failed.Item), failed.Err)
	}
	fmt.Fprintf(w, "%d deleted, %d failed\n", len(r.Deleted), len(r.Failed))
}

func itemText(i controller.Item) string {
	switch i.Kind {
	case controller.KindService:
		return fmt.Sprintf("service %s on node %s", i.Service, i.Node)
	case controller.KindNode:
		return "node " + i.Node
	case controller.KindToken:
		return fmt.Sprintf("token %s of %s", i.Accessor, i.Method)
	}
	return i.Kind + " of task " + i.Task
}

// count returns a number with the word that fits it.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
