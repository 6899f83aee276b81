package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/host"
)

const roleVariable = "LOCALECS_CGROUP_TEST_ROLE"

const mib = 1 << 20

// playRole makes this process a child of the tests of control groups, if it was started as one.
func playRole() {
	switch os.Getenv(roleVariable) {
	case "eater": // eats 256 MiB once its input ends, then waits
		_, _ = io.Copy(io.Discard, os.Stdin)
		// Mapped, since the race detector would eat four times as much again.
		food, err := unix.Mmap(-1, 0, 256*mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(food); i += 4096 {
			food[i] = 1
		}
		fmt.Println("eaten")
		_ = unix.Pause()
	case "owner": // has a group and waits to be killed
		r, err := makeRoot()
		if err == nil {
			_, err = r.task("task", 0)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(r.group.hierarchies[0].dir)
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		return
	}
	os.Exit(0)
}

// child starts this test binary in another role.
func child(t *testing.T, role string) *testkit.Process {
	t.Helper()
	return testkit.StartProcess(t, testkit.ProcessOptions{Env: []string{roleVariable + "=" + role}}, "/proc/self/exe")
}

func openRoot(t *testing.T) *root {
	t.Helper()
	r, err := makeRoot()
	if _, missing := errors.AsType[*host.MissingError](err); missing {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		for _, p := range r.group.hierarchies {
			if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", p.dir, err)
			}
		}
	})
	return r
}

// containerIn makes groups with limits in MiB.
func containerIn(t *testing.T, r *root, task, container uint64) *ControlGroup {
	t.Helper()
	parent, err := r.task("task", task*mib)
	if err != nil {
		t.Fatal(err)
	}
	g, err := parent.below("1", container*mib)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLimitKills(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string][2]uint64{
		"container's": {0, 64},
		"task's":      {64, 0},
		"the smaller": {1024, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := containerIn(t, openRoot(t), limit[0], limit[1])
			c := child(t, "eater")
			if err := g.add(c.PID); err != nil {
				t.Fatal(err)
			}
			if g.outOfMemory() {
				t.Error("killed before it has eaten")
			}
			c.Stdin.Close()
			c.Wait()
			if line, ate := c.Try(); ate {
				t.Errorf("ate more than its limit: %s", line)
			}
			if !g.outOfMemory() {
				t.Error("no process was killed")
			}
		})
	}
}

func TestCloseRemovesNestedGroups(t *testing.T) {
	t.Parallel()
	g := containerIn(t, openRoot(t), 0, 0)
	for _, p := range g.hierarchies {
		if err := os.MkdirAll(filepath.Join(p.dir, "made", "inside"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	g := containerIn(t, openRoot(t), 1024, 512)
	c := child(t, "eater")
	if err := g.add(c.PID); err != nil {
		t.Fatal(err)
	}
	c.Stdin.Close()
	c.Expect("eaten")
	u := g.Usage()
	if u.Memory < 256*mib {
		t.Errorf("memory usage %d, want 256 MiB or more", u.Memory)
	}
	testkit.Equal(t, "limit", u.Limit, 512*mib)
	if u.Threads == 0 {
		t.Error("no threads")
	}
	if cpu := u.User + u.Kernel; cpu <= 0 || cpu > time.Minute {
		t.Errorf("CPU time %s, want some and at most a minute", cpu)
	}
	if g.outOfMemory() {
		t.Error("a kill is reported without one")
	}
	unlimited := containerIn(t, openRoot(t), 0, 0)
	if u := unlimited.Usage(); u.Limit != 0 {
		t.Errorf("limit %d where there is none", u.Limit)
	}
}

// A group in use is not removed by others; one whose owner was killed is gone after the next start.
func TestSweepRemovesGroupsOfDeadProcessesOnly(t *testing.T) {
	t.Parallel()
	alive := openRoot(t)
	dead := child(t, "owner")
	dir := dead.Line()
	if !filepath.IsAbs(dir) {
		t.Fatalf("no group: %q", dir)
	}
	openRoot(t)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a living owner's group was taken: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "task")); err != nil {
		t.Fatalf("no group of its task: %v", err)
	}
	// From here on any other simulator of this machine may remove it, too.
	dead.Signal(unix.SIGKILL)
	dead.Wait()
	openRoot(t)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dead owner's group is left: %v", err)
	}
	if _, err := alive.task("still", 0); err != nil {
		t.Errorf("our own group was taken: %v", err)
	}
}

func TestHostWithoutControllers(t *testing.T) {
	t.Parallel()
	_, err := open([]hierarchy{{memoryV1, filepath.Join(t.TempDir(), "not", "there")}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
