package runtime

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// What a stop does to PID 1.
func TestSignalsAtPID1(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, tc := range []struct {
		name   string
		args   []string
		init   bool
		await  string
		signal syscall.Signal
		want   int
	}{
		{name: "handler: its own code", args: []string{"/bin/helper", "trap", "7"}, await: "ready", signal: syscall.SIGTERM, want: 7},
		// Before Go 1.27 it was 2.
		{name: "Go program without a handler", args: []string{"/bin/helper", "block"}, await: "ready", signal: syscall.SIGTERM, want: 143},
		{name: "shell trap", args: sh(`trap 'exit 9' TERM; echo ready; while :; do /bin/sleep 0.05; done`), await: "ready", signal: syscall.SIGTERM, want: 9},
		{name: "init, program without a handler", args: []string{"/bin/sleep", "1000"}, init: true, signal: syscall.SIGTERM, want: 143},
		{name: "init, handler", args: []string{"/bin/helper", "trap", "7"}, init: true, await: "ready", signal: syscall.SIGTERM, want: 7},
		{name: "kill", args: []string{"/bin/sleep", "1000"}, signal: syscall.SIGKILL, want: 137},
		{name: "kill through init", args: []string{"/bin/sleep", "1000"}, init: true, signal: syscall.SIGKILL, want: 137},
		{name: "exits by itself", args: sh("exit 3"), want: 3},
		{name: "exits by itself under init", args: sh("exit 3"), init: true, want: 3},
		{name: "child killed under init", args: sh("kill -USR1 $$"), init: true, want: 138},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, out := start(t, r, Spec{Args: tc.args, InitProcess: tc.init})
			out.await(t, tc.await)
			if tc.signal != 0 {
				if err := c.Signal(tc.signal); err != nil {
					t.Fatal(err)
				}
			}
			before := time.Now()
			exit := await(t, c)
			if exit.Code != tc.want {
				t.Errorf("code %d, want %d\n%s", exit.Code, tc.want, out)
			}
			if exit.At.Before(before.Add(-time.Minute)) || exit.At.After(time.Now()) {
				t.Errorf("ended at %v", exit.At)
			}
			if err := c.Signal(syscall.SIGTERM); err != nil {
				t.Errorf("signal after the end: %v", err)
			}
		})
	}
}

// A program such as sleep as PID 1 has no handler and the kernel drops the signal.
func TestPID1WithoutAHandlerIgnoresTERM(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, args := range [][]string{{"/bin/sleep", "1000"}, sh("while :; do /bin/sleep 0.1; done")} {
		c, _ := start(t, r, Spec{Args: args})
		for range 3 {
			if err := c.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		// A probe that runs inside is proof that PID 1 is alive.
		if got := c.Exec(t.Context(), Shell("exit 42")); got.Code != 42 {
			t.Errorf("%v: probe after TERM: %+v", args, got)
		}
		c.Kill()
		if exit := await(t, c); exit.Code != 137 {
			t.Errorf("%v: %+v, want 137", args, exit)
		}
	}
}

func TestSignalsArriveWithTheirNames(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, init := range []bool{false, true} {
		c, out := start(t, r, Spec{Args: []string{"/bin/helper", "signals"}, InitProcess: init})
		out.await(t, "ready")
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
			if err := c.Signal(s); err != nil {
				t.Fatal(err)
			}
			out.await(t, fmt.Sprintf("got %v\n", s))
		}
		if err := c.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := await(t, c); exit.Code != 0 {
			t.Errorf("init %v: %+v\n%s", init, exit, out)
		}
	}
}

// TERM is for PID 1 only; all other processes end with it.
func TestDeathOfPID1KillsGrandchildren(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, out := start(t, r, Spec{Args: sh(
		`(trap 'echo child got TERM' TERM; echo child; while :; do /bin/sleep 0.05; done) & trap 'exit 0' TERM; ` +
			`/bin/sleep 1000 & echo ready; while :; do /bin/sleep 0.05; done`)})
	out.await(t, "ready")
	out.await(t, "child\n")
	inside := insiders(t, c.PID())
	if len(inside) < 3 {
		t.Fatalf("processes %v, want PID 1, its child, sleep", inside)
	}
	if err := c.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := await(t, c); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	if strings.Contains(out.String(), "child got TERM") {
		t.Error("the child got the signal too")
	}
	for _, pid := range inside {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && sameNamespace(pid, inside[0]) {
			t.Errorf("process %d is alive", pid)
		}
	}
}

func TestProcShowsOwnProcessesOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	other, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	_, out := run(t, r, Spec{Args: []string{"/bin/helper", "facts"}})
	if diff := cmp.Diff([]string{"/proc/1"}, factsOf(t, out).Processes); diff != "" {
		t.Error(diff)
	}
	_, out = run(t, r, Spec{Args: []string{"/bin/helper", "facts"}, InitProcess: true})
	f := factsOf(t, out)
	if len(f.Processes) != 2 || f.PID == 1 {
		t.Errorf("under init: PID %d among %v", f.PID, f.Processes)
	}
	other.Kill()
}

func TestInitReapsOrphans(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, out := start(t, r, Spec{InitProcess: true, Args: sh(`/bin/sh -c '/bin/sh -c "exit 0" & exit 0'; echo ready; exec /bin/sleep 1000`)})
	out.await(t, "ready")
	// A zombie is a directory in /proc; only init and sleep may stay.
	eventually(t, func() bool { return len(insiders(t, c.PID())) == 2 })
}

func TestContainerStartsWithDefaultSignals(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, out := run(t, r, Spec{Args: sh("while read a b; do case $a in SigIgn:|SigBlk:) echo $a $b;; esac; done </proc/1/status")})
	if want := "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// The simulator's terminal is not the containers': Ctrl-C goes to a session.
func TestContainerHasASessionAndNoForeignDescriptors(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	_, out := run(t, r, Spec{Args: sh("echo /proc/self/fd/*; read -r _ _ _ _ _ s _ </proc/1/stat; echo session $s")})
	// 3 is the directory that is being read.
	if want := "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\nsession 1\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// kill -9 of the program, not of what supervises it.
func TestSignalProgramReachesOtherProcessesThanPID1(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	other, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	for name, s := range map[string]Spec{
		"init":       {Args: []string{"/bin/sleep", "1000"}, InitProcess: true},
		"supervisor": {Args: sh("/bin/sleep 1000 & wait $!; exit $?")},
		"shared pid": {Args: sh("/bin/sleep 1000 & wait $!; exit $?"), pids: sharePIDs(t, r)},
	} {
		c, _ := start(t, r, s)
		if n := c.SignalProgram("none", syscall.SIGKILL); n != 0 {
			t.Errorf("%s: %d processes of a program that does not run", name, n)
		}
		// The shell may not have started it yet.
		for end := time.Now().Add(testkit.Patience); c.SignalProgram("sleep", syscall.SIGKILL) == 0; {
			if time.Now().After(end) {
				t.Fatalf("%s: the program was not found", name)
			}
		}
		if exit := await(t, c); exit.Code != 137 {
			t.Errorf("%s: %+v, want PID 1 to end with its program's 137", name, exit)
		}
		if n := c.SignalProgram("sleep", syscall.SIGKILL); n != 0 {
			t.Errorf("%s: %d processes after its end", name, n)
		}
	}
	if n := other.SignalProgram("sleep", 0); n != 1 {
		t.Error("another container's program was hit")
	}
}
