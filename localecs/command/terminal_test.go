package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/vt"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// openTerminal opens a pseudo terminal of 100 columns and 30 rows.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		testkit.Missing(t, "no pseudo terminal: "+err.Error())
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	if err := pty.Setsize(master, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestProgressFollowsFlagsAndTerminal(t *testing.T) {
	t.Parallel()
	_, terminal := openTerminal(t)
	pipe := &bytes.Buffer{}
	for _, c := range []struct {
		name  string
		flags runFlags
		out   io.Writer
		term  string
		live  bool
	}{
		{"terminal", runFlags{mode: auto}, terminal, "xterm", true},
		{"dumb terminal", runFlags{mode: auto}, terminal, "dumb", false},
		{"unknown terminal", runFlags{mode: auto}, terminal, "", false},
		{"pipe", runFlags{mode: auto}, pipe, "xterm", false},
		{"JSON on a terminal", runFlags{mode: auto, json: true}, terminal, "xterm", false},
		{"live in a pipe", runFlags{mode: live}, pipe, "dumb", true},
		{"plain on a terminal", runFlags{mode: plainMode}, terminal, "xterm", false},
	} {
		inv := &cli.Invocation{
			Stdout: c.out, Stderr: terminal, Log: hclog.NewNullLogger(),
			Getenv: func(name string) string { return map[string]string{"TERM": c.term}[name] },
		}
		got, stop, err := c.flags.follower(t.Context(), inv, New(t.Context(), c.out, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, live := got.(*scenario.Live); live != c.live {
			t.Errorf("%s: got %T, live %t", c.name, got, c.live)
		}
		if inv.Stderr == io.Writer(terminal) {
			t.Errorf("%s: the log is written straight to the terminal", c.name)
		}
		if stop(); inv.Stderr != io.Writer(terminal) {
			t.Errorf("%s: stderr was not restored", c.name)
		}
	}
}

// Nothing reads the output, and its pipe is soon full.
func TestEventsDoNotWaitForTheReader(t *testing.T) {
	t.Parallel()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer reader.Close() // first: it ends the write that is blocked
	ctx, cancel := context.WithCancel(t.Context())
	inv := &cli.Invocation{Stdout: pipe, Stderr: pipe, Log: hclog.NewNullLogger(), Getenv: func(string) string { return "" }}
	flags := runFlags{mode: auto}
	follow, stop, err := flags.follower(ctx, inv, New(ctx, pipe, func(error) {}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // 180 kB
		follow.Event(scenario.Event{Kind: view.KindStatus, Task: "web", Container: "app", Text: "RUNNING"})
		inv.Log.Error("unable to start the container")
	}
	cancel()
	stop()
}

func TestProgressFlagRefusesNonsense(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`invalid value "on" for flag -progress: want auto, live, plain`: {"-progress", "on", "x"},
		"-progress live and -json are mutually exclusive":               {"-progress", "live", "-json", "x"},
	} {
		if got := call(t, append([]string{"run"}, args...)...); got.code != exit.CodeUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: exit %d, %s, want %q", args, got.code, got.stderr, want)
		}
	}
}

func TestSizeOfATerminal(t *testing.T) {
	t.Parallel()
	master, slave := openTerminal(t)
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	expect := func(f *os.File, width, height int) {
		t.Helper()
		if w, h, ok := Size(f); w != width || h != height || !ok {
			t.Errorf("got %dx%d, %t, want %dx%d", w, h, ok, width, height)
		}
	}
	expect(slave, 100, 30)
	expect(nil, 80, 24)
	expect(file, 80, 24)
	if err := pty.Setsize(master, &pty.Winsize{}); err != nil {
		t.Fatal(err)
	}
	expect(slave, 80, 24)
}

// session is localecs on a terminal of its own.
type session struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	screen *vt.Terminal
	raw    bytes.Buffer
	output chan []byte // closed when nobody has the terminal any more
}

func startSession(t *testing.T, env []string, args ...string) *session {
	t.Helper()
	self := testkit.SelfArgs("localecs", args...)
	cmd := exec.Command(self[0], self[1:]...)
	cmd.Env = append(append(os.Environ(), "TERM=xterm", "GORACE=atexit_sleep_ms=0"), env...)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		testkit.Missing(t, "no pseudo terminal: "+err.Error())
	}
	s := &session{t: t, master: master, cmd: cmd, screen: vt.New(100, 30), output: make(chan []byte)}
	s.screen.Reflow = true
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		cmd.Process.Kill()
		cmd.Wait()
		master.Close()
	})
	go func() {
		defer close(s.output)
		for {
			p := make([]byte, 4096)
			n, err := master.Read(p)
			if err != nil {
				return
			}
			select {
			case s.output <- p[:n]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return s
}

// until reads until the screen is as it should be.
func (s *session) until(what string, ok func(screen string) bool) {
	s.t.Helper()
	patience := time.After(3 * testkit.Patience)
	for !ok(strings.Join(s.screen.Screen(), "\n")) {
		select {
		case p, more := <-s.output:
			if !more {
				s.t.Fatalf("it ended, want %s; the screen shows\n%s", what, s.screen.Text())
			}
			s.raw.Write(p)
			s.screen.Write(p)
		case <-patience:
			s.t.Fatalf("want %s; the screen shows\n%s", what, s.screen.Text())
		}
	}
}

// shows reads until the screen shows text.
func (s *session) shows(text string) {
	s.t.Helper()
	s.until(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// end reads to the end and returns all that is left of it, and the exit code.
func (s *session) end() (text string, code int) {
	defer time.AfterFunc(3*testkit.Patience, func() { s.cmd.Process.Kill() }).Stop()
	for p := range s.output {
		s.raw.Write(p)
		s.screen.Write(p)
	}
	_ = s.cmd.Wait() // the code says it
	return s.screen.Text(), s.cmd.ProcessState.ExitCode()
}

// keepOutputAtCtrlC has the terminal keep what it holds when Ctrl-C comes: it
// throws that away else, and what the test has not read yet is in it.
func (s *session) keepOutputAtCtrlC() {
	s.t.Helper()
	fd := int(s.master.Fd())
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	settings.Lflag |= unix.NOFLSH
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, settings); err != nil {
		s.t.Fatal(err)
	}
}

// waitingScene waits for what does not come, however long a test takes to look.
func waitingScene(t *testing.T) string {
	t.Helper()
	return variant(t, `
- start: [web]
- await: {service: api, passing: 1, within: 600s}
`, func(_, text string) string { return text })
}

// Ctrl-C on a terminal: the block is gone, what was said before stays.
func TestInterruptLeavesTheScreenClean(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	scene := waitingScene(t)
	s := startSession(t, nil, append(append([]string{"run", "-dir", t.TempDir()}, programs...), scene)...)
	s.shows("start the Consul server")
	s.shows("step 2 of 2: await 1 passing instances of api (0 of 1), ")
	s.shows("consul-client running")
	// No program can help it when its window is resized in the middle of a frame.
	s.until("the end of a frame", func(string) bool { return bytes.HasSuffix(s.raw.Bytes(), []byte("\x1b7")) })
	if err := pty.Setsize(s.master, &pty.Winsize{Cols: 60, Rows: 20}); err != nil {
		t.Fatal(err)
	}
	s.screen.Resize(60, 20)
	s.until("a rule of 59 columns", func(screen string) bool {
		_, rule, _ := strings.Cut(screen, "\n──")
		rule, _, _ = strings.Cut(rule, "\n")
		return utf8.RuneCountInString(rule) == 57
	})
	s.keepOutputAtCtrlC()
	if _, err := s.master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	got, code := s.end()
	if code != exit.CodeUnknown {
		t.Errorf("exit %d, want 3", code)
	}
	for _, want := range []string{"leader elected, ACLs on, default deny", "consul-client          RUNNING", "asked to stop (the simulator is ending)", "stopped by signal interrupt"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, block := range []string{"──", "step 2 of 2", "start the Consul server", "^C"} {
		if strings.Contains(got, block) {
			t.Errorf("%q is left", block)
		}
	}
	if raw := s.raw.String(); !strings.Contains(raw, "\x1b[33m") || strings.LastIndex(raw, "\x1b[0m") < strings.LastIndex(raw, "\x1b[3") {
		t.Error("no colours, or one of them stays")
	}
	if t.Failed() {
		t.Logf("the screen at the end, not understood: %v\n%s", s.screen.Unknown, got)
	}
}

// Ctrl-Z clears the screen before the shell has it, and the block comes back.
func TestSuspendClearsTheScreen(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	scene := waitingScene(t)
	s := startSession(t, []string{"NO_COLOR=1"}, append(append([]string{"run", "-dir", t.TempDir()}, programs...), scene)...)
	s.shows("step 2 of 2")
	if err := s.cmd.Process.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, status %x, want a stopped process", err, status)
	}
	s.until("no block", func(screen string) bool { return !strings.Contains(screen, "step 2") })
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.shows("step 2 of 2")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.end(); strings.Contains(got, "step 2") {
		t.Errorf("the block is left:\n%s", got)
	}
	if raw := s.raw.String(); strings.Contains(raw, "\x1b[3") || strings.Contains(raw, "\x1b[2m") {
		t.Error("it has colours in spite of NO_COLOR")
	}
}
