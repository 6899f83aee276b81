package network

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const childVariable = "LOCALECS_NETWORK_TEST_CHILD"

// child makes a VPC with two tasks, says so, and waits to be killed.
func child() int {
	f, err := New(Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, id := range []string{"a", "b"} {
		if _, err := f.Attach(id); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// hostLinks returns what the host's own namespace shows.
func hostLinks(t *testing.T) []string {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprint(l.Attrs().Name, addrs))
	}
	return names
}

func TestKilledSimulatorLeavesNoLinks(t *testing.T) {
	newFabric(t, Options{}) // skips where there is no network
	before := hostLinks(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	simulator := testkit.StartProcess(t, testkit.ProcessOptions{Env: []string{childVariable + "=1"}}, "/proc/self/exe")
	simulator.Expect("ready")
	if diff := cmp.Diff(before, hostLinks(t)); diff != "" {
		t.Errorf("links on the host while it runs (-before +during):\n%s", diff)
	}
	simulator.Signal(unix.SIGKILL)
	simulator.Wait()
	if diff := cmp.Diff(before, hostLinks(t)); diff != "" {
		t.Errorf("links on the host afterwards (-before +after):\n%s", diff)
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(mounts), string(after)); diff != "" {
		t.Errorf("mounts (-before +after):\n%s", diff)
	}
}
