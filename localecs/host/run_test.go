package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// none stands for a program that is not there.
const none = ""

// asUser returns the command line of Run with a role, as a user.
func asUser(t *testing.T, subIDs, newuidmap, newgidmap string, role ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := testkit.SelfArgs("run", append([]string{newuidmap, newgidmap}, role...)...)
	run[0] = testkit.PublicCopy(t, testkit.PublicDir(t), self)
	return testkit.AsUser(t, subIDs, run...)
}

// helpers returns newuidmap and newgidmap where the user can execute them.
func helpers(t *testing.T) (newuidmap, newgidmap string) {
	t.Helper()
	dir := testkit.PublicDir(t)
	return testkit.PublicCopy(t, dir, testkit.RequireBinary(t, "newuidmap")), testkit.PublicCopy(t, dir, testkit.RequireBinary(t, "newgidmap"))
}

// factsOf runs the facts role and returns the line of the log and what it saw.
func factsOf(t *testing.T, args []string) (announced string, f facts) {
	t.Helper()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, args...)
	announced = p.Line()
	line := p.Line()
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatalf("%v in %q after %q", err, line, announced)
	}
	if code := p.Wait(); code != 42 {
		t.Errorf("exit code %d, want the program's, 42", code)
	}
	return announced, f
}

func TestSingleMapping(t *testing.T) {
	t.Parallel()
	announced, f := factsOf(t, asUser(t, none, none, none, "facts"))
	own := []Extent{{Inside: 0, Outside: testkit.UserID, Count: 1}}
	want := facts{Inside: true, IDs: IDs{UIDs: own, GIDs: own}, Group: true, Setgroups: "operation not permitted"}
	if d := cmp.Diff(want, f); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	const line = `[WARN]  running rootless, in a user namespace: uids=0=61234 gids=0=61234 reason="one user for all containers: newuidmap is not installed (package uidmap), newgidmap is not installed (package uidmap), /etc/subuid has no line for the user (such as \"tester:100000:65536\"), /etc/subgid has no line for the user (such as \"tester:100000:65536\")"`
	if announced != line {
		t.Errorf("announced\n%s\nwant\n%s", announced, line)
	}
}

func TestFullMapping(t *testing.T) {
	t.Parallel()
	newuidmap, newgidmap := helpers(t)
	announced, f := factsOf(t, asUser(t, "100000:65536", newuidmap, newgidmap, "facts"))
	ids := []Extent{{Inside: 0, Outside: testkit.UserID, Count: 1}, {Inside: 1, Outside: 100000, Count: 65536}}
	want := facts{Inside: true, IDs: IDs{UIDs: ids, GIDs: ids, Groups: true}, Group: true, Setgroups: "done"}
	if d := cmp.Diff(want, f); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	const line = `[WARN]  running rootless, in a user namespace: uids="0=61234 1-65536=100000-165535" gids="0=61234 1-65536=100000-165535"`
	if announced != line {
		t.Errorf("announced\n%s\nwant\n%s", announced, line)
	}
}

// Root without CAP_SYS_ADMIN keeps every ID there is.
func TestRootOfAContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "this test is about root")
	}
	all, err := CurrentIDs()
	if err != nil {
		t.Fatal(err)
	}
	all.Initial = false
	run := testkit.SelfArgs("run", none, none, "facts")
	_, f := factsOf(t, testkit.SelfArgs("without-caps", run...))
	want := facts{Inside: true, IDs: all, Group: true, Setgroups: "done"}
	if d := cmp.Diff(want, f); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A helper that refuses is no reason to give up.
func TestHelperThatRefuses(t *testing.T) {
	t.Parallel()
	helper := filepath.Join(testkit.PublicDir(t), "newuidmap")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho 'newuidmap: not set-uid' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	announced, f := factsOf(t, asUser(t, "100000:65536", helper, helper, "facts"))
	if len(f.IDs.UIDs) != 1 || f.Missing != nil {
		t.Errorf("got %+v, want the single mapping", f)
	}
	if want := helper + ": exit status 1: newuidmap: not set-uid"; !strings.Contains(announced, want) {
		t.Errorf("%q does not say %q", announced, want)
	}
}

func TestSignalsArriveOnce(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, asUser(t, none, none, none, "signals")...)
	p.Expect("ready")
	for _, s := range []struct {
		signal syscall.Signal
		says   string
	}{{syscall.SIGINT, "got interrupt"}, {syscall.SIGHUP, "got hangup"}, {syscall.SIGINT, "got interrupt"}, {syscall.SIGTERM, "got terminated"}} {
		p.Signal(s.signal)
		if line := p.Line(); line != s.says {
			t.Errorf("after %v: %q, want %q", s.signal, line, s.says)
		}
	}
	if code := p.Wait(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	p.AllGone()
}

// Ctrl-Z and fg.
func TestSuspended(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, asUser(t, none, none, none, "signals")...)
	p.Expect("ready")
	child := children(t, p.PID)
	if len(child) != 1 {
		t.Fatalf("children %v, want one", child)
	}
	for range 2 {
		p.Signal(syscall.SIGTSTP)
		testkit.Eventually(t, "both stop", func() bool { return state(p.PID) == "T" && state(child[0]) == "T" })
		p.Signal(syscall.SIGCONT)
		testkit.Eventually(t, "both go on", func() bool { return state(p.PID) != "T" && state(child[0]) != "T" })
	}
	p.Signal(syscall.SIGTERM)
	if line, code := p.Line(), p.Wait(); line != "got terminated" || code != 7 {
		t.Errorf("%q, exit code %d; want it to go on as before", line, code)
	}
}

// children returns the children of all of a process's threads.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			n, _ := strconv.Atoi(word)
			pids = append(pids, n)
		}
	}
	return pids
}

func TestChildKilledBySignal(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, asUser(t, none, none, none, "die")...)
	if code := p.Wait(); code != 137 {
		t.Errorf("exit code %d, want 128+9", code)
	}
}

// kill -9 of the parent ends the child, whatever it ignores, under both ways
// to make it, and even when it is stopped and another process adopts it.
func TestKilledParentTakesTheChildAlong(t *testing.T) {
	t.Parallel()
	newuidmap, newgidmap := helpers(t)
	for name, tc := range map[string]struct {
		subIDs, newuidmap, newgidmap string
		stopped                      bool
	}{
		"single":          {},
		"single, stopped": {stopped: true},
		"full":            {"100000:65536", newuidmap, newgidmap, false},
		"full, stopped":   {"100000:65536", newuidmap, newgidmap, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("adopt", asUser(t, tc.subIDs, tc.newuidmap, tc.newgidmap, "hang")...)...)
			var parent, pid int
			if _, err := fmt.Sscanf(p.Line(), "runs %d", &parent); err != nil {
				t.Fatal(err)
			}
			p.Line()
			if _, err := fmt.Sscanf(p.Line(), "hangs %d", &pid); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			if tc.stopped {
				fmt.Fprint(p.Stdin, "x")
				testkit.Eventually(t, "the child stops", func() bool { return state(pid) == "T" })
			}
			if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.AllGone()
			testkit.Eventually(t, "the child ends", func() bool { return state(pid) == "" })
		})
	}
}

// state returns a process's letter in /proc, empty when there is none.
func state(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	letter, _, _ := strings.Cut(rest, " ")
	return letter
}

func TestRootLacksNothingOnThisHost(t *testing.T) {
	t.Parallel()
	missing, err := MissingOnHost()
	if os.Getuid() != 0 {
		return
	}
	if err != nil || missing != nil {
		t.Errorf("Missing() = %v, %v for root", missing, err)
	}
}
