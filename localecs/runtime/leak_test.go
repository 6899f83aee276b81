package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hostState returns what a host shows of itself: mounts and links.
func hostState(t *testing.T) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	state := strings.Split(string(mounts), "\n")
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		state = append(state, "link "+l.Attrs().Name)
	}
	return state
}

// namespaces returns the namespaces of a process, by kind.
func namespaces(pid int) map[string]string {
	all := map[string]string{}
	for _, kind := range []string{"pid", "mnt", "uts", "ipc", "net"} {
		all[kind] = namespaceOf(pid, kind)
	}
	return all
}

// inUse reports whether any process of the host, or any descriptor of one, holds one of the namespaces.
func inUse(t *testing.T, wanted map[string]bool) string {
	t.Helper()
	return inUseSince(t, wanted, 1<<62)
}

// inUseSince returns what inUse finds for processes that were there at a moment, in ticks since boot: a later one may
// have a new namespace of the same name.
func inUseSince(t *testing.T, wanted map[string]bool, at int64) string {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/ns/*", "/proc/[0-9]*/fd/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			ns, err := os.Readlink(p)
			if err != nil || !wanted[ns] {
				continue
			}
			if pid := strings.Split(p, "/")[2]; startOf(pid) <= at {
				command, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
				return fmt.Sprintf("%s -> %s (%q)", p, ns, command)
			}
		}
	}
	return ""
}

// startOf returns when a process was started, in ticks since boot.
func startOf(pid string) int64 {
	stat, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third
	if len(fields) < 20 {
		return 1 << 62 // it has ended
	}
	ticks, _ := strconv.ParseInt(fields[19], 10, 64)
	return ticks
}

// The promise of the whole design: kill -9 of the simulator leaves nothing.
func TestKilledSimulatorLeavesNothing(t *testing.T) {
	newRuntime(t)
	newTask(t)
	before := hostState(t)
	simulator := testkit.StartProcess(t, testkit.ProcessOptions{Env: []string{simulatorVariable + "=1"}}, "/proc/self/exe")
	pids := map[string]int{}
	for line := simulator.Line(); line != "ready"; line = simulator.Line() {
		var name string
		var pid int
		if _, err := fmt.Sscan(line, &name, &pid); err != nil {
			t.Fatal(line)
		}
		pids[name] = pid
	}
	if len(pids) != 6 {
		t.Fatalf("simulator started %v", pids)
	}
	foreign := map[string]bool{}
	own := namespaces(os.Getpid())
	for name, pid := range pids {
		for kind, ns := range namespaces(pid) {
			if ns != own[kind] {
				foreign[ns] = true
			} else if name != "anchor" {
				t.Errorf("%s shares the host's %s namespace", name, kind)
			}
		}
	}
	// The anchor, the spawner, five containers; the init's child, which comes when it comes, two sleeps.
	eventually(t, func() bool {
		inside := 0
		for _, pid := range pids {
			inside += len(insiders(t, pid))
		}
		return inside == 10
	})
	if diff := cmp.Diff(before, hostState(t)); diff != "" {
		t.Errorf("on the host while it runs (-before +during):\n%s", diff)
	}
	var killed unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &killed); err != nil {
		t.Fatal(err)
	}
	simulator.Signal(unix.SIGKILL)
	simulator.Wait()
	// Processes first: they are what the kernel ends; namespaces follow.
	const ticks = 100 // a second
	var found string
	defer func() {
		if found != "" {
			t.Log("left: ", found)
		}
	}()
	eventually(t, func() bool { found = inUseSince(t, foreign, killed.Nano()*ticks/1e9); return found == "" })
	if diff := cmp.Diff(before, hostState(t)); diff != "" {
		t.Errorf("on the host afterwards (-before +after):\n%s", diff)
	}
}

func TestClosedRuntimeLeavesNothing(t *testing.T) {
	newRuntime(t)
	before := hostState(t)
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	descriptors := openFiles(t)
	foreign := map[string]bool{namespaceOf(r.spawn.helpers[0].pid, "pid"): true}
	own := namespaces(os.Getpid())
	for range 5 {
		c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
		for kind, ns := range namespaces(c.PID()) {
			if ns != own[kind] {
				foreign[ns] = true
			}
		}
		c.Exec(t.Context(), Shell("exit 0"))
		if _, err := r.Start(Spec{Name: "bad", Image: toolbox(t), Args: []string{"/missing"}}); err == nil {
			t.Error("/missing was started")
		}
	}
	if len(foreign) != 21 {
		t.Errorf("%d namespaces, want 4 for each of 5 and the anchor's", len(foreign))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return inUse(t, foreign) == "" })
	if diff := cmp.Diff(before, hostState(t)); diff != "" {
		t.Errorf("on the host (-before +after):\n%s", diff)
	}
	if now := openFiles(t); now >= descriptors {
		t.Errorf("%d descriptors open, %d before the containers, with the runtime's own", now, descriptors)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
