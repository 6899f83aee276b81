package subcommand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// gc runs the command to its end.
func (w *clusterWorld) gc(env []string, args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	return w.desk(env, append([]string{"gc"}, args...)...)
}

// desk runs a command to its end.
func (w *clusterWorld) desk(env []string, args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	defer cancel()
	line := testkit.SelfArgs("consul-ecs", args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), w.env()...), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		w.t.Fatalf("%v\n%s", err, errs.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestGC: the plan shows evidence and changes nothing; -apply carries it out,
// and a second time there is nothing to do.
func TestGC(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ids := w.run(3)
	gone := strings.Repeat("9", 32)
	w.leave(append(ids, gone)...)
	w.ecs.Stop(ids[0])
	live := slices.Sorted(slices.Values(append(ids[1:], gone)))

	code, out, stderr := w.gc(nil, "-plan", "-wait", "0s", "-cluster", w.arn)
	if code != 0 || stderr != "" || len(w.services()) != 4 {
		t.Fatalf("code %d, stderr %q, %d services left", code, stderr, len(w.services()))
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, want := range []string{
		w.arn,
		ids[0] + " dead: ECS shows the task as STOPPED since 20",
		"  service web-" + ids[0] + " on node node-" + ids[0],
		"  service web-" + ids[0] + "-sidecar-proxy on node node-" + ids[0],
		gone + " stays: missing, below the minimum age, first missing 0s ago, minimum 5m0s (0 tokens, 2 services)",
		"2 to delete of 1 dead task; 1 task stays; 2 tasks run",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is not %q:\n%s", i+1, want, out)
		}
	}

	code, out, stderr = w.gc(nil, "-apply", "-wait", "0s", "-cluster", w.arn)
	if code != 0 || stderr != "" || !strings.HasSuffix(out, "\n2 deleted, 0 failed\n") {
		t.Errorf("code %d, stderr %q:\n%s", code, stderr, out)
	}
	if got := w.services(); !slices.Equal(got, live) {
		t.Errorf("services of %q are left, want %q", got, live)
	}
	if got := w.leader(); got != "" {
		t.Errorf("%q still has the lock", got)
	}
	if code, out, _ = w.gc(nil, "-apply", "-wait", "0s", "-cluster", w.arn); code != 0 ||
		!strings.Contains(out, "\n0 to delete of 0 dead tasks; ") {
		t.Errorf("the second time: code %d\n%s", code, out)
	}
}

// With -json, each line is an object: the plan, then what became of it.
func TestGCForMachines(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ids := w.run(2)
	w.leave(ids...)
	w.ecs.Stop(ids[0])
	code, out, stderr := w.gc(nil, "-apply", "-json", "-wait", "0s", "-cluster", w.arn)
	var reports []controller.Report
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var r controller.Report
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	if !strings.Contains(out, `"aws":{"calls":`) {
		t.Errorf("keys in another form:\n%s", out)
	}
	if code != 0 || stderr != "" || len(reports) != 2 {
		t.Fatalf("code %d, stderr %q:\n%s", code, stderr, out)
	}
	plan, done := reports[0], reports[1]
	if plan.Cluster != w.arn || plan.Running != 1 || len(plan.Delete) != 2 || len(plan.Deleted) != 0 ||
		plan.Delete[0].Reason != controller.ReasonStopped {
		t.Errorf("plan %+v", plan)
	}
	if len(done.Deleted) != 2 || len(done.Failed) != 0 || done.Deleted[0].Evidence == "" {
		t.Errorf("done %+v", done)
	}
}

// TestGCRefusesBesideAController: two must not delete at once, and the user learns
// who leads.
func TestGCRefusesBesideAController(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.run(1) // makes the cluster
	p := w.controller()
	testkit.Eventually(t, "the controller leads", func() bool { return w.leads(p) })
	code, out, stderr := w.gc(nil, "-apply", "-cluster", w.arn)
	if code != 2 || out != "" || !strings.Contains(stderr, "has a controller: "+w.leader()+" leads") {
		t.Errorf("code %d, stdout %q, stderr %q", code, out, stderr)
	}
	if code, _, stderr = w.gc(nil, "-plan", "-cluster", w.arn); code != 0 {
		t.Errorf("a plan: code %d, stderr %q", code, stderr)
	}
}

// TestGCReportsMissingPermissions: exit codes of what is refused, away, or misspelt.
func TestGCReportsMissingPermissions(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for name, tc := range map[string]struct {
		env  []string
		args []string
		code int
		want string
	}{
		"neither": {nil, []string{"-cluster", w.arn}, 1, "exactly one of -plan, -apply is required"},
		"both": {nil, []string{"-plan", "-apply", "-cluster", w.arn}, 1,
			"exactly one of -plan, -apply is required"},
		"no cluster": {nil, []string{"-plan"}, 1, "no cluster: give -cluster ARN"},
		"a name":     {nil, []string{"-plan", "-cluster", "mesh"}, 1, `-cluster: cluster "mesh": want arn:`},
		"rate":       {nil, []string{"-plan", "-cluster", w.arn, "-aws-rate", "0"}, 1, "-aws-rate 0: want"},
		"wait":       {nil, []string{"-plan", "-cluster", w.arn, "-wait", "-1s"}, 1, "-wait -1s: want"},
		"partition": {nil, []string{"-plan", "-cluster", w.arn, "-partition", "p"}, 1,
			`partition "p": give -partitions-enabled`},
		"its name": {nil, []string{"-plan", "-cluster", w.arn, "-partitions-enabled", "-partition", "a b"}, 1,
			`partition "a b": want at most 64 letters`},
		"one of two": {nil, []string{"-plan", "-cluster", w.arn, "-cluster", w.arn + "-2"}, 3,
			w.arn + "-2: nothing is deleted in this pass: "},
		"a word":   {nil, []string{"-plan", "now"}, 1, "now"},
		"no right": {[]string{"CONSUL_HTTP_TOKEN="}, []string{"-plan", "-cluster", w.arn}, 2, "list tokens: "},
		"no Consul": {[]string{"CONSUL_HTTP_ADDR=127.0.0.1:1"}, []string{"-plan", "-cluster", w.arn}, 3,
			"connection refused"},
		"not that AWS": {[]string{"AWS_ACCESS_KEY_ID=AKIAOTHER"}, []string{"-plan", "-cluster", w.arn}, 3,
			"nothing is deleted in this pass: "},
		"no such place": {nil, []string{"-plan", "-cluster", w.arn + "-2"}, 3,
			"ClusterNotFoundException: Cluster not found.: check the ARN; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := w.gc(tc.env, tc.args...)
			if out != "" && !strings.HasSuffix(out, "run (incomplete: not everything could be read)\n") {
				t.Errorf("printed\n%s", out)
			}
			if code != tc.code || !strings.Contains(stderr, tc.want) {
				t.Errorf("code %d, want %d; stderr %q, want %q", code, tc.code, stderr, tc.want)
			}
		})
	}
}

// TestGCLooksAgain: as long as another look may decide, and no longer than -wait.
func TestGCLooksAgain(t *testing.T) {
	t.Parallel()
	kept := func(again ...time.Duration) controller.Report {
		var r controller.Report
		for _, a := range again {
			r.Kept = append(r.Kept, controller.RetainedTask{Again: a})
		}
		return r
	}
	fault := errors.New("away")
	for name, tc := range map[string]struct {
		wait    time.Duration
		reports []controller.Report
		err     error
		took    time.Duration
		want    string
	}{
		"nothing to wait for": {time.Hour, []controller.Report{kept(0, 0)}, nil, 0, ""},
		"a second look": {
			time.Hour, []controller.Report{kept(0, time.Minute), kept(0)}, nil, 61 * time.Second,
			"1 task is unknown to ECS: checking again in 1m1s, at ",
		},
		"until the youngest is old enough": {
			time.Hour, []controller.Report{kept(time.Minute, 5*time.Minute), kept()}, nil, 301 * time.Second,
			"2 tasks are unknown to ECS: checking again in 5m1s, at ",
		},
		"not those that take too long": {
			2 * time.Minute, []controller.Report{kept(time.Minute, 5*time.Minute), kept(4 * time.Minute)}, nil,
			61 * time.Second,
			"1 task is unknown to ECS: checking again in 1m1s, at ",
		},
		"no wait":  {0, []controller.Report{kept(time.Minute)}, nil, 0, ""},
		"an error": {time.Hour, []controller.Report{kept(time.Minute)}, fault, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, looks := time.Now(), 0
				var progress strings.Builder
				f := gcFlags{wait: tc.wait}
				_, err := f.look(t.Context(), &progress, func(context.Context) (controller.Report, error) {
					looks++
					return tc.reports[looks-1], tc.err
				})
				if looks != len(tc.reports) || !errors.Is(err, tc.err) || time.Since(start) != tc.took {
					t.Errorf("%d looks in %s, %v", looks, time.Since(start), err)
				}
				if got := progress.String(); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("said %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// noTasks is an ECS without a task.
type noTasks struct{}

func (noTasks) List(context.Context, string, string, func(string)) error { return nil }
func (noTasks) Describe(context.Context, string, []string) (awsutil.DescribedTasks, error) {
	return awsutil.DescribedTasks{}, nil
}
func (noTasks) Counts() awsutil.CallCounts { return awsutil.CallCounts{} }

// ending ends a context as soon as something is written.
type ending struct{ end context.CancelFunc }

func (e ending) Write(p []byte) (int, error) {
	e.end()
	return len(p), nil
}

// TestGCStoppedBeforeItDeletes: a plan that TERM did not let it carry out is no
// success.
func TestGCStoppedBeforeItDeletes(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	cluster, err := awsutil.ParseCluster(w.arn)
	if err != nil {
		t.Fatal(err)
	}
	c := controller.NewCleaner(controller.CleanerOptions{Consul: w.client(w.Token), ECS: noTasks{}, Cluster: cluster,
		Leftovers: agentLeftovers(), Log: hclog.NewNullLogger()})
	for _, plan := range []bool{true, false} {
		ctx, term := context.WithCancel(t.Context())
		f := gcFlags{plan: plan, apply: !plan}
		if err := f.collect(ctx, &cli.Invocation{Stdout: ending{term}, Stderr: io.Discard}, c); plan != (err == nil) {
			t.Errorf("plan %v: %v", plan, err)
		}
	}
}
