package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// supervised starts a supervisor of a child in that role.
func supervised(t *testing.T, o testkit.ProcessOptions, role string, args ...string) *testkit.Process {
	t.Helper()
	return testkit.StartProcess(t, o, testkit.SelfArgs("supervise", testkit.SelfArgs(role, args...)...)...)
}

// everywhere runs a test in an ordinary process, which adopts orphans because
// it asked for them, and as PID 1, to which they come anyway.
func everywhere(t *testing.T, test func(*testing.T, testkit.ProcessOptions)) {
	t.Parallel()
	for _, o := range []testkit.ProcessOptions{{}, {PID1: true}} {
		t.Run(fmt.Sprintf("PID1=%v", o.PID1), func(t *testing.T) {
			t.Parallel()
			test(t, o)
		})
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role, arg string
		want      int
	}{
		{"exit", "0", 0},
		{"exit", "7", 7},
		{"exit", "255", 255},
		{"die", "15", 143},
		{"die", "9", 137},
		{"die", "1", 129},
	} {
		t.Run(c.role+c.arg, func(t *testing.T) {
			t.Parallel()
			p := supervised(t, testkit.ProcessOptions{}, c.role, c.arg)
			if got := p.Wait(); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}

func TestChildInheritsAndLeadsItsGroup(t *testing.T) {
	t.Parallel()
	p := supervised(t, testkit.ProcessOptions{Env: []string{"FLAVOUR=salt"}}, "echo", "-x", "y")
	p.Expect("echo [-x y] salt leader true")
	fmt.Fprintln(p.Stdin, "from outside")
	p.Expect("from outside")
	p.Stdin.Close()
	if got := p.Wait(); got != 5 {
		t.Errorf("exit code %d, want 5", got)
	}
}

func TestSignalReachesTheChildAndGroupSignalsReachAll(t *testing.T) {
	t.Parallel()
	p := supervised(t, testkit.ProcessOptions{}, "group", "first")
	for range 2 {
		p.Line() // both echoes are up
	}
	p.Signal(syscall.SIGUSR1)
	p.Expect("got " + syscall.SIGUSR1.String())
	p.Signal(syscall.SIGHUP) // the supervisor passes it to the group
	for range 2 {
		// Nothing but HUP may follow: USR1 did not reach the second.
		if got, want := p.Line(), "got "+syscall.SIGHUP.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	p.Signal(syscall.SIGUSR2)
	if got := p.Wait(); got != 9 {
		t.Errorf("exit code %d, want 9", got)
	}
	p.AllGone()
}

func TestOrphansEndWithTheChild(t *testing.T) {
	everywhere(t, func(t *testing.T, o testkit.ProcessOptions) {
		p := supervised(t, o, "family", "3")
		p.Expect("generation 0") // the last one is up and deaf
		fmt.Fprintln(p.Stdin)
		p.Expect("left: no child processes")
		if o.PID1 {
			p.Expect("namespace: no such process")
		}
		if got := p.Wait(); got != 7 {
			t.Errorf("exit code %d, want 7", got)
		}
		p.AllGone()
	})
}

// A program that ended is started again, and the remaining processes of each run are killed.
func TestChildIsStartedAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, o testkit.ProcessOptions) {
		p := testkit.StartProcess(t, o, testkit.SelfArgs("again", testkit.SelfArgs("abandon")...)...)
		for range 3 {
			fmt.Fprintln(p.Stdin)
			p.Expect("generation 0")
			p.Expect("code 8 left: no child processes")
		}
		p.Stdin.Close()
		if got := p.Wait(); got != 0 {
			t.Errorf("exit code %d, want 0", got)
		}
		p.AllGone()
	})
}

func TestZombiesAreReapedWhileTheChildRuns(t *testing.T) {
	everywhere(t, func(t *testing.T, o testkit.ProcessOptions) {
		p := supervised(t, o, "litter")
		p.Expect("littered")
		testkit.Eventually(t, "no zombie is left", func() bool { return len(zombies(t, p.PID)) == 0 })
		p.Stdin.Close()
		if got := p.Wait(); got != 0 {
			t.Errorf("exit code %d, want 0", got)
		}
	})
}

// zombies lists the dead children of pid that are not reaped.
func zombies(t *testing.T, pid int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var dead []string
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, ppid, _ := parseStat(stat)
		if ppid == pid && bytes.Contains(stat, []byte(") Z ")) {
			dead = append(dead, path)
		}
	}
	return dead
}

func TestChildDiesWithItsSupervisor(t *testing.T) {
	t.Parallel()
	p := supervised(t, testkit.ProcessOptions{}, "sleep")
	p.Expect("asleep")
	p.Signal(syscall.SIGKILL)
	if got := p.Wait(); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}
	p.AllGone()
}

func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("thread-ends",
		testkit.SelfArgs("echo")...)...)
	p.Line()
	// The echo answers, so the end of the thread did not kill it.
	for range 10 {
		fmt.Fprintln(p.Stdin, "alive?")
		p.Expect("alive?")
	}
	p.Stdin.Close()
	if got := p.Wait(); got != 5 {
		t.Errorf("exit code %d, want 5", got)
	}
}

func TestStartFailureNamesProgramAndRemedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, noFormat := filepath.Join(dir, "plain"), filepath.Join(dir, "no-format")
	for path, mode := range map[string]os.FileMode{plain: 0o644, noFormat: 0o755} {
		if err := os.WriteFile(path, []byte("neither ELF nor script"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, program, want string }{
		{
			"not in PATH", "no-such-program",
			`start "no-such-program": executable file not found in $PATH: check the command`,
		},
		{"no such file", dir + "/none", "no such file or directory: check the command"},
		{"not executable", plain, "permission denied: check the command"},
		{"wrong format", noFormat, "exec format error: check the command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Start([]string{c.program}, hclog.NewNullLogger())
			testkit.ErrorContains(t, err, c.want)
			testkit.ErrorContains(t, err, `start "`+c.program+`": `)
		})
	}
	if _, err := Start(nil, hclog.NewNullLogger()); err == nil {
		t.Error("an empty command started")
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stat      string
		pid, ppid int
		ok        bool
	}{
		{"7 (sh) S 1 7 7", 7, 1, true},
		{"42 (a) b) (c) Z 41 1", 42, 41, true},
		{"42 (x)", 0, 0, false},
		{"(x) S 1", 0, 0, false},
		{"", 0, 0, false},
		{") (", 0, 0, false},
	} {
		pid, ppid, ok := parseStat([]byte(c.stat))
		if ok != c.ok {
			t.Errorf("parseStat(%q) = %v, want %v", c.stat, ok, c.ok)
		}
		if got, want := [...]int{pid, ppid}, [...]int{c.pid, c.ppid}; ok && got != want {
			t.Errorf("parseStat(%q) = %d, want %d", c.stat, got, want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (sh) S 1 7 7"))
	f.Add([]byte("7 ()) ( S 1"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if pid, _, ok := parseStat(stat); ok && pid <= 0 {
			t.Errorf("pid %d: a signal to it would hit more than one process", pid)
		}
	})
}
