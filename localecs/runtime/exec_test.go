package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A probe runs as the container does.
func TestProbeRunsAsTheContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	task := newTask(t)
	c, _ := start(t, r, Spec{
		netNS: task.File(), User: "envoy", WorkingDir: "/work", Hostname: "h", Env: []string{"X=1"}, ReadOnlyRoot: true,
		Ulimits: []Ulimit{{"nofile", 1024, 4096}}, Args: []string{"/bin/sleep", "1000"},
	})
	got := c.Exec(t.Context(), ExecSpec{Argv: []string{"helper", "facts"}})
	if got.Code != 0 || got.TimedOut {
		t.Fatalf("%+v", got)
	}
	f := factsOf(t, got.Output)
	want := facts{
		UID: 5995, GID: 5990, Cwd: "/work", Host: "h",
		Env:      []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=h", "X=1"},
		Bounding: 0xa00425fb &^ (1 << 27), NoNewPrivs: 1, Home: "/",
	}
	f.PID, f.Session, f.Descriptors, f.Processes = 0, 0, nil, nil
	f.Nofile = [2]uint64{} // set right after the start, see the test below
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, tc := range []struct {
		spec ExecSpec
		code int
		out  string
	}{
		{Shell("test $X = 1"), 0, ""},
		{Shell("echo out; echo err >&2; exit 3"), 3, "out\nerr\n"},
		{Shell("kill -9 $$"), 137, ""},
		{Shell("echo x 2>/dev/null >/x || echo read-only"), 0, "read-only\n"},
		{Shell("read a </proc/self/net/dev; echo /proc/[0-9]*/ns/net >/dev/null"), 0, ""},
		{ExecSpec{Argv: []string{"/bin/sh", "-c", "exit 2"}}, 2, ""},
	} {
		if got := c.Exec(t.Context(), tc.spec); got.Code != tc.code || !strings.HasSuffix(got.Output, tc.out) {
			t.Errorf("%q: %+v, want code %d, output %q", tc.spec.Argv, got, tc.code, tc.out)
		}
	}
}

func TestProbeHasTheContainersLimits(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Ulimits: []Ulimit{{"nofile", 77, 99}}, Args: []string{"/bin/sleep", "1000"}})
	// The limit is set when the process runs already, so ask until it is there.
	got := c.Exec(t.Context(), Shell(`while [ "$(ulimit -Sn):$(ulimit -Hn)" != 77:99 ]; do :; done; echo ok`))
	if got.Output != "ok\n" {
		t.Errorf("%+v", got)
	}
}

// Only the probe process is killed; its children are not awaited.
func TestTimeoutKillsTheProbeOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	spec := Shell("/bin/sleep 555 & echo said; wait")
	spec.Timeout = 300 * time.Millisecond
	for left := 1; left == 1; spec.Timeout *= 2 { // a busy machine needs more for the child
		start := time.Now()
		got := c.Exec(t.Context(), spec)
		took := time.Since(start)
		// PID 1 and the probe's child, which is an orphan now.
		eventually(t, func() bool { left = len(insiders(t, c.PID())); return left <= 2 })
		want := ExecResult{Code: -1, Output: "said\n", TimedOut: true}
		if diff := cmp.Diff(want, got); left == 2 && diff != "" {
			t.Error(diff)
		}
		if took < spec.Timeout || took > spec.Timeout+testkit.Patience {
			t.Errorf("took %s of %s", took, spec.Timeout)
		}
		if spec.Timeout > testkit.Patience {
			t.Fatal("the child is killed, too, or never there")
		}
	}
	if exit := c.Exec(t.Context(), Shell("exit 0")); exit.Code != 0 {
		t.Errorf("next probe: %+v", exit)
	}
}

func TestProbeThatEndsIsNotHeldUpByItsChildren(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	got := c.Exec(t.Context(), Shell("/bin/sleep 555 & echo said; exit 5"))
	if got.Code != 5 || got.Output != "said\n" {
		t.Errorf("%+v", got)
	}
}

func TestProbeOutputIsCut(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	got := c.Exec(t.Context(), Shell(`i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done`))
	testkit.Equal(t, "code", got.Code, 0)
	testkit.Equal(t, "bytes", len(got.Output), 4096)
	if !strings.HasPrefix(got.Output, "line 0\nline 1\n") {
		t.Errorf("output %.20q, want the first lines", got.Output)
	}
}

func TestProbeThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	const prefix = "OCI runtime exec failed: exec failed: unable to start container process: "
	for argv, want := range map[string]string{
		"/nope":      `exec: "/nope": stat /nope: no such file or directory: unknown`,
		"curl":       `exec: "curl": executable file not found in $PATH: unknown`,
		"/etc/hosts": `exec: "/etc/hosts": stat /etc/hosts: permission denied: unknown`,
	} {
		got := c.Exec(t.Context(), ExecSpec{Argv: []string{argv}})
		if diff := cmp.Diff(ExecResult{Code: 255, Output: prefix + want}, got); diff != "" {
			t.Errorf("%s: %s", argv, diff)
		}
	}
	if got := c.Exec(t.Context(), ExecSpec{}); got.Code != 255 {
		t.Errorf("empty: %+v", got)
	}
	c.Kill()
	await(t, c)
	if got := c.Exec(t.Context(), Shell("exit 0")); got.Code != 255 {
		t.Errorf("after the end: %+v", got)
	}
}

func TestProbeDiesWithItsContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}, Mounts: []Mount{{Source: t.TempDir(), Target: "/v"}}})
	result := make(chan ExecResult)
	go func() { result <- c.Exec(context.Background(), Shell("echo up >/v/up; /bin/sleep 1000")) }()
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join("/proc", itoa(c.PID()), "root/v/up"))
		return err == nil
	})
	c.Kill()
	await(t, c)
	if got := <-result; got.Code != 137 || got.TimedOut {
		t.Errorf("%+v", got)
	}
}

func TestCancelledProbe(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.Exec(ctx, Shell("/bin/sleep 1000")); got.Code != -1 || got.TimedOut {
		t.Errorf("%+v", got)
	}
}

// Threads that were inside a container are gone; none is left in a foreign
// namespace, the first one least of all.
func TestProbesLeaveNoThreadBehind(t *testing.T) {
	r := newRuntime(t)
	task := newTask(t)
	c, _ := start(t, r, Spec{netNS: task.File(), Args: []string{"/bin/sleep", "1000"}})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if got := c.Exec(t.Context(), Shell("exit 0")); got.Code != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
	home := namespaceOf(os.Getpid(), "mnt")
	if home != namespaceOf(1, "mnt") && home == namespaceOf(c.PID(), "mnt") {
		t.Error("the process is inside the container")
	}
	eventually(t, func() bool {
		threads, err := filepath.Glob("/proc/self/task/*/ns/mnt")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range threads {
			if ns, err := os.Readlink(path); err == nil && ns != home {
				return false
			}
		}
		return true
	})
}
