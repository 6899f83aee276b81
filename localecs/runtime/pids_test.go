package runtime

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func sharePIDs(t *testing.T, r *Runtime) *pidNamespace {
	t.Helper()
	p, err := r.sharePIDs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// With pidMode task containers see each other, and none has PID 1.
func TestSharedPIDsShowEveryContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := sharePIDs(t, r)
	a, _ := start(t, r, Spec{pids: p, Args: []string{"/bin/sleep", "1000"}})
	b, out := start(t, r, Spec{pids: p, Args: sh(`for f in /proc/[0-9]*/comm; do read -r c < $f; echo $c; done; echo pid $$; exec /bin/sleep 1000`)})
	out.await(t, "pid ")
	// The first is ours, named after the binary; the others are in no order.
	lines := strings.Fields(out.String())
	seen := slices.Sorted(slices.Values(lines[1:min(len(lines), 3)]))
	if len(lines) != 5 || lines[4] == "1" {
		t.Errorf("b sees %q, want PID 1, sh and sleep, and not to be PID 1", lines)
	}
	testkit.Equal(t, "what b sees beside PID 1", seen, []string{"sh", "sleep"})
	if namespaceOf(a.PID(), "pid") != namespaceOf(b.PID(), "pid") {
		t.Error("two pid namespaces")
	}
	for _, kind := range []string{"mnt", "ipc", "uts"} {
		if namespaceOf(a.PID(), kind) == namespaceOf(b.PID(), kind) {
			t.Errorf("the %s namespace is shared too", kind)
		}
	}
	if probe := b.Exec(t.Context(), Shell("exit 42")); probe.Code != 42 {
		t.Errorf("probe %+v", probe)
	}
	own, facts := run(t, r, Spec{Args: []string{"/bin/helper", "facts"}})
	if diff := cmp.Diff([]string{"/proc/1"}, factsOf(t, facts).Processes); own.Code != 0 || diff != "" {
		t.Errorf("a container outside sees %s", diff)
	}
	// Without a handler TERM ends a process that is not PID 1.
	for _, c := range []*Container{a, b} {
		if err := c.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, c); exit.Code != 143 {
			t.Errorf("%+v, want 143", exit)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Start(Spec{Name: "late", Image: toolbox(t), Args: []string{"/bin/sleep", "1"}, pids: p}); err == nil {
		t.Error("a container started in a namespace that is gone")
	}
}

// One container's end is not the other's, and takes its own children along.
func TestEndOfOneContainerInSharedPIDs(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := sharePIDs(t, r)
	other, _ := start(t, r, Spec{pids: p, Args: sh(`/bin/sleep 1000 & exec /bin/sleep 1000`)})
	c, out := start(t, r, Spec{pids: p, Args: sh(`/bin/sh -c '/bin/sleep 1000 & exit 0'; /bin/sleep 1000 & echo ready; wait`)})
	out.await(t, "ready")
	mounts := namespaceOf(c.PID(), "mnt")
	c.Kill()
	if exit := await(t, c); exit.Code != 137 {
		t.Errorf("%+v, want 137", exit)
	}
	// A program that another test starts just now has our descriptors until its exec.
	eventually(t, func() bool { return inUse(t, map[string]bool{mounts: true}) == "" })
	// PID 1 and the other container's two, of which one comes when it comes.
	eventually(t, func() bool { return len(insiders(t, other.PID())) == 3 })
	if probe := other.Exec(t.Context(), Shell("exit 42")); probe.Code != 42 {
		t.Errorf("the other container: %+v", probe)
	}
	// The runtime's end closes what is left: no Close of p here.
}

// A container in its own pid namespace is PID 1 also after one that shares was cloned.
func TestSpawnerReturnsFromSharedPIDs(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := sharePIDs(t, r)
	for i := range 3 {
		shared, _ := start(t, r, Spec{pids: p, Args: []string{"/bin/sleep", "1000"}})
		_, out := run(t, r, Spec{Args: sh("echo $$")})
		if out != "1\n" {
			t.Errorf("round %d: PID %s, want 1", i, strings.TrimSpace(out))
		}
		shared.Kill()
		await(t, shared)
	}
	holder := p.pid
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", holder)); err == nil && namespaceOf(holder, "pid") != namespaceOf(os.Getpid(), "pid") {
		t.Error("PID 1 of the shared namespace is left")
	}
}

// The kernel gives a mount namespace's number to the next one at once; the end
// of a container must not take the next container along.
func TestEndInSharedPIDsSparesOtherContainers(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := sharePIDs(t, r)
	image := toolbox(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 15 {
				shared, err := r.Start(Spec{Name: "shared", Image: image, pids: p, Args: sh("exit 3")})
				if err != nil || shared.Exit().Code != 3 {
					t.Errorf("shared: %v", err)
				}
				own, err := r.Start(Spec{Name: "own", Image: image, Args: sh("exit 4")})
				if err != nil || own.Exit().Code != 4 {
					t.Errorf("own: %v", err)
				}
			}
		})
	}
	all.Wait()
}
