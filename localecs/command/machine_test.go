package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// machine separates runs of localecs from this host, as far as namespaces can: it sees only its own processes, mounts,
// links and shared memory, so whatever is there after a run and was not there before has been left behind. Its first
// process, to which every orphan falls, is this binary.
type machine struct {
	t   *testing.T
	dir string
	in  *json.Encoder
	out *json.Decoder
}

// order is one run of localecs, and what happens to it when.
type order struct {
	Args []string
	// On is a lesser host to run on: one of lesserHosts and its arguments.
	On string
	// The moment: after so many lines of its standard output, or as soon as so
	// many processes exist beside the machine's. At once when both are 0.
	Lines, Processes int
	// Run is how many tasks of the leaks scenario a client runs first, through the
	// ECS API whose exports are the first line.
	Run int
	// Do is what happens then: a signal's name, with " group" for all who reads the terminal; "close" takes its
	// standard output away; "kill WORD" kills the process with WORD on its command line. Empty is nothing.
	Do string
	// Next is a second run on the same directory, started right after that and ended at its first line.
	Next []string
}

// answer is what came of an order.
type answer struct {
	ending
	// Before and After are what the machine showed of itself.
	Before, After []string
	// Kept is what may be left by a run that was killed, until the next one.
	Kept []string
	Done bool    // the moment came
	Next *ending // of the second run
}

// ending is how a run ended.
type ending struct {
	Code   int
	Lines  []string // of standard output
	Stderr string
	Late   time.Duration // how long it went on after the moment
}

// newMachine makes a machine in which path is the only place that runs share.
func newMachine(t *testing.T) *machine {
	t.Helper()
	w := &machine{t: t, dir: t.TempDir()}
	args := testkit.SelfArgs("machine", w.dir)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TMPDIR="+filepath.Join(w.dir, "tmp"))
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			testkit.Missing(t, "namespaces need root")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	w.in, w.out = json.NewEncoder(stdin), json.NewDecoder(stdout)
	return w
}

// run sends an order and returns its answer.
func (w *machine) run(o order) answer {
	w.t.Helper()
	var a answer
	if err := errors.Join(w.in.Encode(o), w.out.Decode(&a)); err != nil {
		w.t.Fatalf("the machine has ended: %v", err)
	}
	return a
}

// runMachine runs as the first process of a machine: it carries out orders until there are no more.
func runMachine(args []string) int {
	dir := args[0]
	leave, err := settle(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a machine:", err)
		return 1
	}
	defer leave()
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if orders.Decode(&o) != nil {
			return 0
		}
		a, err := carryOut(dir, o)
		if err == nil {
			err = answers.Encode(a)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "carry out an order:", err)
			return 1
		}
	}
}

// settle makes this process's namespaces a machine.
func settle(dir string) (leave func(), err error) {
	for _, d := range []string{"tmp", "mqueue", "shm"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	leave, err = ownGroups()
	lo, noLoopback := netlink.LinkByName("lo")
	if noLoopback == nil {
		noLoopback = netlink.LinkSetUp(lo)
	}
	return leave, errors.Join(err, noLoopback,
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("shm", "/dev/shm", "tmpfs", 0, ""),
		unix.Mount("mqueue", filepath.Join(dir, "mqueue"), "mqueue", 0, ""))
}

// ownGroups moves this process into its own control groups, where the host has version 1 of them.
func ownGroups() (leave func(), err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	leave = func() {}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "memory" && parts[1] != "cpuacct" {
			continue
		}
		outer := filepath.Join("/sys/fs/cgroup", parts[1], parts[2])
		inner := filepath.Join(outer, fmt.Sprint("machine-", time.Now().UnixNano()))
		if err := os.Mkdir(inner, 0o755); err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(inner, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return leave, err
		}
		before := leave
		leave = func() {
			before()
			_ = os.WriteFile(filepath.Join(outer, "cgroup.procs"), []byte("0"), 0o644)
			removeGroups(inner)
		}
	}
	return leave, err
}

// removeGroups removes a control group and those below it.
func removeGroups(dir string) {
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, b := range below {
		removeGroups(filepath.Dir(b))
	}
	_ = unix.Rmdir(dir)
}

// carryOut runs localecs, does to it what is ordered, and looks at what is left when it has ended.
func carryOut(dir string, o order) (a answer, err error) {
	a.Before = look(dir)
	first, err := launch(dir, o.On, o.Args)
	if err != nil {
		return a, err
	}
	if o.Run > 0 {
		if err := first.runTasks(o.Run, o.Processes == 0); err != nil {
			return a, errors.Join(err, fmt.Errorf("%+v", first.finish()))
		}
	}
	a.Done = first.await(o)
	if a.Done {
		o.act(first.cmd.Process.Pid, first.read)
	}
	for a.Done && o.Next != nil && a.Next == nil {
		next, err := launch(dir, o.On, o.Next)
		if err != nil {
			return a, err
		}
		next.await(order{Lines: 1})
		_ = next.cmd.Process.Signal(syscall.SIGTERM)
		if n := next.finish(); n.Code != 1 || !first.ending() {
			a.Next = &n
		}
	}
	a.ending = first.finish()
	start := time.Now()
	for a.After = look(dir); !slices.Equal(a.Before, a.After) && time.Since(start) < testkit.Patience; a.After = look(dir) {
		<-time.After(time.Millisecond)
	}
	a.Kept = kept(dir)
	return a, nil
}

// simulator is a run of localecs.
type simulator struct {
	cmd    *exec.Cmd
	read   *os.File
	lines  chan string
	seen   []string
	stderr strings.Builder
	ended  chan struct{}
}

func launch(dir, host string, args []string) (*simulator, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args = testkit.SelfArgs("localecs", args...)
	attr := &syscall.SysProcAttr{Setpgid: true}
	if role := strings.Fields(host); len(role) > 0 {
		args = testkit.SelfArgs(role[0], append(append(role[1:], "--"), args...)...)
		if role[0] == "limited" { // the limits are a user namespace's
			attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET
			attr.UidMappings = []syscall.SysProcIDMap{{Size: 1 << 16}}
			attr.GidMappings = attr.UidMappings
		}
	}
	s := &simulator{cmd: exec.Command(args[0], args[1:]...), read: read, lines: make(chan string, 10000), ended: make(chan struct{})}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, write, &s.stderr
	s.cmd.SysProcAttr = attr
	s.cmd.WaitDelay = orphans
	err = s.cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			s.lines <- lines.Text()
		}
	}()
	return s, nil
}

// ending reports whether the simulator is about to end, or has: its first process is dead or dying.
func (s *simulator) ending() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	return err != nil || strings.Contains(string(status), ") Z") || strings.Contains(string(status), ") X")
}

// orphans is how long those that a run leaks may hold its output: longer than a busy machine
// takes to read what a run has written.
const orphans = 10 * time.Second

// finish waits for its end, and kills it with a goroutine dump when that does not come.
func (s *simulator) finish() (e ending) {
	start := time.Now()
	if !within(testkit.Patience, s.ended) {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.ended
	}
	e.Late = time.Since(start)
	_ = s.read.SetReadDeadline(time.Now().Add(orphans))
	for line := range s.lines {
		s.seen = append(s.seen, line)
	}
	s.read.Close()
	e.Code, e.Lines, e.Stderr = s.cmd.ProcessState.ExitCode(), s.seen, s.stderr.String()
	return e
}

func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// await waits for the moment. It is false when the run ended first.
func (s *simulator) await(o order) bool {
	for len(s.seen) < o.Lines {
		line, ok := <-s.lines
		if !ok {
			return false
		}
		s.seen = append(s.seen, line)
	}
	for o.Processes > 0 && len(processes()) < o.Processes {
		select {
		case <-s.ended:
			return false
		default:
		}
	}
	return true
}

// act does what is ordered.
func (o order) act(pid int, stdout io.Closer) {
	word, rest, _ := strings.Cut(o.Do, " ")
	switch {
	case o.Do == "":
	case word == "close":
		stdout.Close()
	case word == "kill":
		for _, p := range processes() {
			if slices.Contains(p.args, rest) {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
	case rest == "group":
		_ = syscall.Kill(-pid, unix.SignalNum(word))
	default:
		_ = syscall.Kill(pid, unix.SignalNum(word))
	}
}

type processInfo struct {
	pid  int
	args []string
}

// processes returns all but this one, which is the first.
func processes() []processInfo {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []processInfo
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == 1 {
			continue
		}
		line, err := os.ReadFile(d + "/cmdline")
		if err == nil {
			found = append(found, processInfo{pid, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")})
		}
	}
	return found
}
