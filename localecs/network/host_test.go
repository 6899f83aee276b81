package network

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
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

// hostLinks is what the host's own namespace shows.
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

func TestHostKeepsNothingOfAKilledSimulator(t *testing.T) {
	newFabric(t, Options{}) // skips where there is no network
	before := hostLinks(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := stdout.Read(line)
	if got := strings.TrimSpace(string(line[:n])); got != "ready" {
		t.Errorf("child said %q, %v", got, err)
	}
	if diff := cmp.Diff(before, hostLinks(t)); diff != "" {
		t.Errorf("links on the host while it runs (-before +during):\n%s", diff)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
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
