package command

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// callWith runs localecs like call, with files, which the process of exec or visit gets, and a standard input.
func callWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		return f
	}
	in, out, said := file("stdin", stdin), file("stdout", ""), file("stderr", "")
	code := cli.Main(app(), args, func(string) string { return "" }, in, out, said)
	text := func(f *os.File) string {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return result{code, text(out), text(said)}
}

// begin starts a command about the run in its own process.
func (l *looked) begin(args ...string) *testkit.Process {
	l.t.Helper()
	args = append([]string{args[0], "-dir", l.dir}, args[1:]...)
	return testkit.StartProcess(l.t, testkit.ProcessOptions{}, testkit.SelfArgs("localecs", args...)...)
}

// answers waits until a visitor, this binary, is answered by what may not listen yet.
func (l *looked) answers(url, self string) {
	l.t.Helper()
	testkit.Eventually(l.t, "an answer from "+url, func() bool {
		got := callWith(l.t, "", "visit", "-dir", l.dir, "--", self, "-test.run=^TestRole$", "role=get", url)
		return got.code == 0 && got.stdout == "200 OK\n"
	})
}

func TestExecRunsAsTheContainerDoes(t *testing.T) {
	t.Parallel()
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-running", "web", "job")
	for _, tt := range []struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string
	}{
		{[]string{"-container", "app", "web", "--", "sh", "-c", "id -u; pwd; echo $GREETING; echo $HOSTNAME"}, "", 0, "1234\n/tmp\nhello\nip-10-42-0-4.ec2.internal\n", ""},
		{[]string{"-container", "app", "web", "sh", "-c", "echo x > /x"}, "", 2, "", "sh: 1: cannot create /x: Read-only file system\n"},
		{[]string{"job", "sh", "-c", "echo out; echo err >&2; exit 7"}, "", 7, "out\n", "err\n"},
		{[]string{"job", "sh", "-c", "kill -9 $$"}, "", 137, "", ""},
		{[]string{"job", "cat"}, "not passed on", 0, "", ""},
		{[]string{"-i", "job", "cat"}, "passed on", 0, "passed on", ""},
		{[]string{"-i", "job", "sh", "-c", "exit 3"}, strings.Repeat("more than a pipe holds\n", 10000), 3, "", ""},
		{[]string{"job", "nosuch"}, "", 127, "", "localecs exec: exec: \"nosuch\": executable file not found in $PATH\n"},
		{[]string{"job", "/bin"}, "", 126, "", "localecs exec: exec: \"/bin\": stat /bin: is a directory\n"},
		{[]string{"web", "id"}, "", 125, "", "localecs exec: web has several running containers: select one with -container: app, side\n"},
		{[]string{"-container", "ap", "web", "id"}, "", 125, "", "localecs exec: no container ap; did you mean app?\n"},
		{[]string{"jab", "id"}, "", 125, "", "localecs exec: no task jab; did you mean job?\n"},
		{[]string{"-it", "job", "sh"}, "", 125, "", "localecs exec: -t: standard input and output must be a terminal\n"},
		{[]string{"job"}, "", 125, "", "localecs exec: want a task and a command to run in it\n"},
	} {
		if strings.HasSuffix(tt.stdout, "internal\n") {
			tt.stdout = strings.Replace(tt.stdout, "10-42-0-4", strings.ReplaceAll(l.state("web").Tasks[0].Address(), ".", "-"), 1)
		}
		got := callWith(t, tt.stdin, append([]string{"exec", "-dir", l.dir}, tt.args...)...)
		if diff := cmp.Diff(result{tt.code, tt.stdout, tt.stderr}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestExecPassesSignalsOnAndEndsWithTheRun(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-running", "job")
	const script = "trap 'echo signalled; exit 5' INT; echo ready; while :; do sleep 0.05; done"
	p := l.begin("exec", "job", "sh", "-c", script)
	p.Expect("ready")
	p.Signal(syscall.SIGINT)
	p.Expect("signalled")
	if code := p.Wait(); code != 5 {
		t.Errorf("exit %d, want 5", code)
	}
	// Who is killed takes his process along.
	killed := l.begin("exec", "job", "sh", "-c", "echo $$; exec sleep 86399")
	killed.Line()
	killed.Signal(syscall.SIGKILL)
	testkit.Eventually(t, "the process in the container ends", func() bool { return !runs("sleep\x0086399\x00") })
	// And the end of the container is an end.
	open := l.begin("exec", "job", "sh", "-c", script)
	visit := l.begin("visit", "sh", "-c", script)
	open.Expect("ready")
	visit.Expect("ready")
	l.ask(0, "stop", "-all")
	if in, by := open.Wait(), visit.Wait(); in != 137 || by != 137 {
		t.Errorf("exec ended with %d, visit with %d, want 137", in, by)
	}
	l.end(3, "STOPPED (UserInitiated: localecs stop -all)")
}

// runs reports whether a process has such a command line.
func runs(line string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(text), line) {
			return true
		}
	}
	return false
}

func TestExecWhenTheRunIsKilled(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh", "sleep")
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-running", "job")
	open := l.begin("exec", "job", "sh", "-c", "echo ready; while :; do sleep 0.05; done")
	visit := l.begin("visit", "sh", "-c", "echo ready; exec sleep 86398")
	open.Expect("ready")
	visit.Expect("ready")
	l.Signal(syscall.SIGKILL)
	if in, by := open.Wait(), visit.Wait(); in != 125 || by != 125 {
		t.Errorf("exec ended with %d, visit with %d, want 125", in, by)
	}
	testkit.Eventually(t, "the visitor ends", func() bool { return !runs("sleep\x0086398\x00") })
}

func TestExecHasATerminal(t *testing.T) {
	t.Parallel()
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-running", "job")
	args := testkit.SelfArgs("localecs", "exec", "-dir", l.dir, "-it", "job", "--", "sh")
	cmd := exec.Command(args[0], args[1:]...)
	window, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 91, Rows: 31})
	if err != nil {
		t.Fatal(err)
	}
	defer window.Close()
	// The shell's own Ctrl-C ends the loop, not the shell.
	for _, input := range []string{"test -t 0 && test -t 1 && echo is a termin''al\n", "kid size\n", "while :; do echo wait''ing; sleep 0.05; done\n"} {
		if _, err := io.WriteString(window, input); err != nil {
			t.Fatal(err)
		}
	}
	said := expect(t, window, "is a terminal", "31 91", "waiting")
	for _, input := range []string{"\x03", "echo aft''er; exit 6\n"} {
		if _, err := io.WriteString(window, input); err != nil {
			t.Fatal(err)
		}
	}
	said += expect(t, window, "after")
	_ = cmd.Wait() // the code is checked
	if code := cmd.ProcessState.ExitCode(); code != 6 {
		t.Errorf("exit %d, want 6\n%s", code, said)
	}
}

// expect reads until all words have come, in their order.
func expect(t *testing.T, from io.Reader, words ...string) (said string) {
	t.Helper()
	buf := make([]byte, 4096)
	rest := ""
	for len(words) > 0 {
		n, err := from.Read(buf)
		said, rest = said+string(buf[:n]), rest+string(buf[:n])
		for len(words) > 0 && strings.Contains(rest, words[0]) {
			_, rest, _ = strings.Cut(rest, words[0])
			words = words[1:]
		}
		if err != nil && len(words) > 0 {
			t.Fatalf("want %q: %v\n%s", words, err, said)
		}
	}
	return said
}

func TestVisitReachesTasksByName(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh", "getent", "cat", "pwd")
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-healthy", "web")
	web := l.state("web").Tasks[0]
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args   []string
		stdin  string
		code   int
		stdout string
	}{
		"task":        {[]string{"getent", "ahostsv4", "web"}, "", 0, web.Address()},
		"with domain": {[]string{"getent", "ahostsv4", "web.default.local"}, "", 0, web.Address()},
		"no name":     {[]string{"getent", "ahostsv4", "localecs-none"}, "", 2, ""},
		"files":       {[]string{"cat", "visiting_test.go"}, "", 0, "package command\n"},
		"directory":   {[]string{"pwd"}, "", 0, dir + "\n"},
		"stdin":       {[]string{"cat"}, "hello", 0, "hello"},
		"environment": {[]string{"sh", "-c", "echo $CONSUL_HTTP_ADDR $AWS_REGION $AWS_ENDPOINT_URL_ECS ${HTTPS_PROXY-none}"}, "", 0, "http://10.42.0.254:8500 us-east-1 http://10.42.0.1 none\n"},
		"code":        {[]string{"--", "sh", "-c", "exit 9"}, "", 9, ""},
		"nothing":     {[]string{"localecs-nosuch"}, "", 127, ""},
		"no program":  {[]string{"./visiting_test.go"}, "", 126, ""},
	} {
		got := callWith(t, tt.stdin, append([]string{"visit", "-dir", l.dir}, tt.args...)...)
		if got.code != tt.code || !strings.HasPrefix(got.stdout, tt.stdout) || tt.stdout == "" && got.stdout != "" {
			t.Errorf("%s: %+v, want %d %q", name, got, tt.code, tt.stdout)
		}
	}
	// By HTTP, with this binary as the client.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.answers("http://web:8080/", self)
	if after, err := os.ReadFile("/etc/resolv.conf"); err != nil || !bytes.Equal(resolver, after) {
		t.Errorf("the host's names are others now: %v\n%s", err, after)
	}
	if _, err := net.LookupHost("web.default.local"); err == nil {
		t.Error("the host knows the name")
	}
}

// asUser runs a command about the run of a desk, as the user who has started it.
func (d desk) asUser(t *testing.T, args ...string) result {
	t.Helper()
	line := testkit.AsUser(t, "", append([]string{filepath.Join(d.dir, "localecs"), args[0], "-dir", d.state}, args[1:]...)...)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the code is checked
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Who is not root looks into what he has started without it, and his programs visit it.
func TestRootlessRunCanBeInspected(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.run(t, "", 1000000)
	for _, tt := range []struct {
		args   []string
		stdout string
	}{
		{[]string{"wait", "-healthy", "pair"}, ""},
		{[]string{"ps", "-q", "pair"}, ""},
		{[]string{"exec", "-container", "reader", "pair", "id", "-u"}, "0\n"},
		{[]string{"visit", filepath.Join(d.dir, "hello"), "get", "http://pair:8080/"}, ""},
		{[]string{"visit", "sh", "-c", "exit 0"}, ""},
		{[]string{"logs", "-tail", "1", "pair", "writer"}, "/data/public 0:0 644\n"},
		{[]string{"stop", "-all"}, "pair\n"},
	} {
		got := d.asUser(t, tt.args...)
		if slices.Contains(tt.args, "get") { // it may not listen yet
			testkit.Eventually(t, "an answer", func() bool { got = d.asUser(t, tt.args...); return got.code == 0 })
		}
		if got.code != 0 || tt.stdout != "" && got.stdout != tt.stdout {
			t.Errorf("%q: %+v, want %q", tt.args, got, tt.stdout)
		}
	}
	if code := p.Wait(); code != 3 {
		t.Errorf("the run: exit %d, want 3", code)
	}
	// What root has started is root's.
	l := lookInto(t, looking(), testkit.PublicDir(t))
	l.ask(0, "wait", "-running", "job")
	d.state = l.dir
	got := d.asUser(t, "ps")
	if want := "localecs ps: the run in " + filepath.Join(l.dir, "looking") + " belongs to another user (uid 0)\n"; got.code != 3 || got.stderr != want {
		t.Errorf("a run of root's: %+v, want %s", got, want)
	}
}

func TestVisitOnTheHostsNetwork(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	scene := t.TempDir()
	for _, name := range []string{"scenario.yaml", "web.json", "job.json"} {
		text, err := os.ReadFile(filepath.Join(looking(), name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(onHost(name, string(text)), "consul: {image", "subnet: 127.42.0.0/24\nconsul: {image")
		if err := os.WriteFile(filepath.Join(scene, name), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := asRoot(t)("run", "-network", "host", "-dir", dir, "-var", "kid="+self, scene)
	l := &looked{Process: p, t: t, dir: dir}
	l.ask(0, "wait", "-healthy", "web")
	l.answers("http://web:8080/", self)
	if out, _ := l.ask(0, "exec", "-container", "app", "web", "id", "-u"); out != "1234\n" {
		t.Errorf("exec: %q", out)
	}
	l.ask(0, "stop", "-all")
	l.end(3, "STOPPED (UserInitiated: localecs stop -all)")
}
