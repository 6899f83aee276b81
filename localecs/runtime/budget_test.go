package runtime

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// newBudget makes a task's budget, with a limit in MiB.
func newBudget(t *testing.T, r *Runtime, mib uint64) *ControlGroup {
	t.Helper()
	b, err := r.Limit("task", mib<<20)
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		testkit.Missing(t, r.noGroups.Error())
	}
	return b
}

// fill makes a shell use some 60 MiB: files in /dev/shm are its memory, too.
const fill = "head -c 62914560 /dev/zero >/dev/shm/food || exit 9; echo eaten; "

func TestBudgetCountsEveryProcess(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	b := newBudget(t, r, 256)
	image := toolbox(t)
	image.Programs["/bin/head"] = "/usr/bin/head"
	image.Programs["/bin/grep"] = "/bin/grep"
	pids, err := r.sharePIDs()
	if err != nil {
		t.Fatal(err)
	}
	defer pids.Close()
	for name, s := range map[string]Spec{
		"PID 1":        {},
		"with an init": {InitProcess: true},
		"shared pids":  {pids: pids},
	} {
		s.Image, s.Args, s.budget = image, sh(fill), b
		s.Memory = 32 << 20
		// The shell may outlive head for the moment that it takes to write "Killed".
		exit, out := run(t, r, s)
		if !exit.OOM || exit.Code == 0 {
			t.Errorf("%s, less than it needs: %+v, want out of memory", name, exit)
		}
		if strings.Contains(out, "eaten") {
			t.Errorf("%s, less than it needs: output %q", name, out)
		}
		s.Memory = 0
		exit, out = run(t, r, s)
		if exit.OOM || exit.Code != 0 {
			t.Errorf("%s, enough: %+v", name, exit)
		}
		testkit.Equal(t, name+", enough: output", out, "eaten\n")
	}
	s := Spec{Image: image, Args: sh("echo ready; exec /bin/helper trap 0"), budget: b, Memory: 48 << 20}
	c, out := start(t, r, s)
	out.await(t, "ready")
	u, ok := c.Usage()
	if !ok || u.Memory == 0 {
		t.Errorf("usage %+v, %v", u, ok)
	}
	testkit.Equal(t, "limit", u.Limit, 48<<20)
	// A probe joins right after its start.
	probe := c.Exec(context.Background(), Shell("until grep -q localecs- /proc/self/cgroup; do :; done; "+fill))
	if probe.Code == 0 {
		t.Errorf("a probe had more than its container: %+v", probe)
	}
	c.Kill()
	if exit := await(t, c); !exit.OOM {
		t.Errorf("%+v", exit)
	}
	if _, ok := c.Usage(); ok {
		t.Error("usage of what has ended")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A host without memory groups runs containers all the same, and says so.
func TestHostWithoutControllersReportsMissingLimits(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	if r.groups != nil {
		if err := r.groups.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	r.log = hclog.New(&hclog.LoggerOptions{Output: &out})
	r.groups, r.noGroups = nil, errors.New("limit memory: the host lacks a control group")
	b, err := r.Limit("web", 1<<20)
	if b != nil || err != nil {
		t.Fatalf("got %v, %v", b, err)
	}
	if exit, _ := run(t, r, Spec{Args: sh("exit 3"), budget: b, Memory: 1}); exit.Code != 3 || exit.OOM {
		t.Errorf("%+v", exit)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), r.noGroups.Error()) {
		t.Errorf("the log says %q", out.String())
	}
}
