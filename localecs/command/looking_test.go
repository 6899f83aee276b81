package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

// looked is a run that others look into.
type looked struct {
	*testkit.Process
	t   *testing.T
	dir string
}

// lookInto starts a scenario of testdata below a directory; its run is named like it.
func lookInto(t *testing.T, scenario, dir string) *looked {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := asRoot(t)("run", "-dir", dir, "-var", "kid="+self, scenario)
	return &looked{Process: p, t: t, dir: dir}
}

// looking returns the scenario that most tests look into.
func looking() string {
	return filepath.Join(testkit.Root(), "localecs", "command", "testdata", "looking")
}

// ask calls a command about the run, which has to have a code, and returns what it has said on both.
func (l *looked) ask(code int, args ...string) (stdout, stderr string) {
	l.t.Helper()
	got := callWith(l.t, "", append([]string{args[0], "-dir", l.dir}, args[1:]...)...)
	if got.code != code {
		l.t.Fatalf("%q: exit %d, want %d\n%s\n%s", args, got.code, code, got.stdout, got.stderr)
	}
	return got.stdout, got.stderr
}

// says asks a command about the run until it has said so: what a container has written is in its log a moment later.
func (l *looked) says(want string, args ...string) {
	l.t.Helper()
	testkit.Eventually(l.t, fmt.Sprintf("%q says %q", args, want), func() bool {
		out, _ := l.ask(0, args...)
		return out == want
	})
}

// state returns what ps -json says.
func (l *looked) state(args ...string) (s control.State) {
	l.t.Helper()
	out, _ := l.ask(0, append([]string{"ps", "-json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	return s
}

// end waits for the run's end.
func (l *looked) end(code int, says string) {
	l.t.Helper()
	for !strings.Contains(l.Line(), says) {
	}
	if got := l.Wait(); got != code {
		l.t.Errorf("the run: exit %d, want %d", got, code)
	}
	if _, err := os.Lstat(filepath.Join(l.dir, "looking", control.SocketName)); !os.IsNotExist(err) {
		l.t.Errorf("the socket is still there: %v", err)
	}
}

func TestRunCanBeInspectedFromAnotherShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &looked{t: t, dir: dir}
	early := make(chan result, 1)
	go func() { early <- call(t, "wait", "-dir", dir, "-healthy", "web") }() // before there is a run
	l = lookInto(t, looking(), dir)
	if got := <-early; got.code != 0 || got.stdout+got.stderr != "" {
		t.Fatalf("wait -healthy: %+v", got)
	}
	l.ask(0, "wait", "-running", "job")
	s := l.state()
	if len(s.Tasks) != 2 || s.Name != "looking" || s.Command != "run" || s.Directory != filepath.Join(dir, "looking") {
		t.Fatalf("%+v", s)
	}
	web := s.Tasks[0]
	if web.Name != "web" {
		web = s.Tasks[1]
	}
	if web.LastStatus != "RUNNING" || web.HealthStatus != "HEALTHY" || !strings.HasPrefix(web.Address(), "10.42.0.") || len(web.Containers) != 2 || web.Containers[1].Health() != "" {
		t.Errorf("%+v", web)
	}
	if out, _ := l.ask(0, "ps", "-q", "web"); out != web.ID()+"\n" {
		t.Errorf("ps -q: %q, want %s", out, web.ID())
	}
	for _, name := range []string{"web", web.ID(), web.ID()[:8], web.TaskARN} {
		l.says("two\n", "logs", "-tail", "1", name, "side")
	}
	l.says("app  | ready\nside | one\nside | two\n", "logs", "web")
	out, _ := l.ask(0, "logs", "-json", "-tail", "1", "web", "side")
	if want := `{"task":"web","container":"side","line":"two"}` + "\n"; out != want {
		t.Errorf("logs -json: %s", out)
	}

	// What a user has stopped is no failure of the scenario's.
	if out, _ := l.ask(0, "stop", "web"); out != "web\n" {
		t.Errorf("stop: %q", out)
	}
	if s := l.state(); len(s.Tasks) != 1 || s.Tasks[0].Name != "job" {
		t.Errorf("after stop: %+v", s.Tasks)
	}
	web = l.state("-all", "web").Tasks[0]
	if web.LastStatus != "STOPPED" || web.StopCode != "UserInitiated" || *web.Containers[1].ExitCode != 4 {
		t.Errorf("after stop: %+v", web)
	}
	_, said := l.ask(1, "wait", "-healthy", "web")
	if want := "localecs wait: web is STOPPED (UserInitiated: Task stopped by user)\nside: last output:\n  one\n  two\n  bye\n"; said != want {
		t.Errorf("wait for what has stopped: %q", said)
	}
	l.says("working\n", "logs", "job") // and has its trap
	following := make(chan result, 2)
	go func() { following <- call(t, "logs", "-f", "-dir", dir, "job") }()
	go func() { following <- call(t, "wait", "-dir", dir, "job") }()
	l.ask(0, "stop", "-json", "job")
	first, second := <-following, <-following
	if strings.Contains(first.stdout, "told") {
		first, second = second, first
	}
	if first.stdout != "3\n" || second.stdout != "working\ntold\n" || first.code != 0 || second.code != 0 {
		t.Errorf("wait %+v, logs -f %+v", first, second)
	}
	l.end(0, "looking: all checks passed")

	if out, _ := l.ask(0, "logs", "web", "side"); out != "one\ntwo\nbye\n" {
		t.Errorf("logs of a run that has ended: %q", out)
	}
	_, said = l.ask(3, "ps")
	if want := "localecs ps: nothing runs below " + dir + ": start localecs run or localecs serve there, or name its directory with -dir\n"; said != want {
		t.Errorf("ps of a run that has ended: %q", said)
	}
}

func TestNamesThatThereAreNot(t *testing.T) {
	t.Parallel()
	l := lookInto(t, looking(), t.TempDir())
	l.ask(0, "wait", "-running", "web", "job")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"ps", "wbe"}, 1, "localecs ps: no task wbe; did you mean web?\n"},
		{[]string{"logs", "joob"}, 1, "localecs logs: no task joob; did you mean job?\n"},
		{[]string{"logs", "web", "ap"}, 1, "localecs logs: no container ap; did you mean app?\n"},
		{[]string{"logs"}, 1, "localecs logs: want a task and optionally one of its containers\n"},
		{[]string{"stop", "jo"}, 1, "localecs stop: no task jo; did you mean job?\n"},
		{[]string{"stop"}, 1, "localecs stop: want task names, or -all\n"},
		{[]string{"wait", "-healthy", "jbo"}, 1, "localecs wait: no task jbo; did you mean job?\n"},
		{[]string{"wait", "-healthy", "job"}, 1, "localecs wait: job has no health check: wait for -running\n"},
		{[]string{"wait", "-steady", "web"}, 1, "localecs wait: no service web; there are none yet\n"},
		{[]string{"wait", "-healthy", "-running", "job"}, 1, "localecs wait: -running, -healthy, -stopped, -steady and -passing are mutually exclusive\n"},
	} {
		if _, said := l.ask(tt.code, tt.args...); said != tt.want {
			t.Errorf("%q says %q, want %q", tt.args, said, tt.want)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"job"}, "job is RUNNING"},
		{[]string{"-passing", "api=2"}, "Consul sends traffic to 0 of 2 instances of api"},
	} {
		limit, said, want := 10*time.Millisecond, "", "so"
		for ; said != want && limit < testkit.Patience; limit *= 4 { // within which the run has to tell how it is
			want = fmt.Sprintf("localecs wait: timed out after %s; %s\n", limit, tt.want)
			_, said = l.ask(1, append([]string{"wait", "-timeout", limit.String()}, tt.args...)...)
		}
		if said != want {
			t.Errorf("%q says %q, want %q", tt.args, said, want)
		}
	}
}

// A run that was killed cannot take its socket away.
func TestSocketOfAKilledRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := lookInto(t, looking(), dir)
	l.ask(0, "wait", "-running", "web")
	l.says("ready\n", "logs", "web", "app")
	waiting := make(chan result, 1)
	go func() { waiting <- call(t, "wait", "-dir", dir, "job") }()
	l.Signal(syscall.SIGKILL)
	l.Wait()
	if got := <-waiting; got.code != 1 || !strings.Contains(got.stderr, "the run has ended") && !strings.Contains(got.stderr, "nothing runs") {
		t.Errorf("wait: %+v", got)
	}
	_, said := l.ask(3, "ps")
	if want := "; the run in " + filepath.Join(dir, "looking") + " was killed\n"; !strings.HasSuffix(said, want) {
		t.Errorf("ps says %q, want %q", said, want)
	}
	if out, _ := l.ask(0, "logs", "-f", "web", "app"); out != "ready\n" {
		t.Errorf("logs: %q", out)
	}
	l = lookInto(t, looking(), dir)
	l.ask(0, "wait", "-running", "web", "job")
	if out, _ := l.ask(0, "stop", "-all"); !strings.Contains(out, "web\n") || !strings.Contains(out, "job\n") {
		t.Errorf("stop -all: %q", out)
	}
	l.end(3, "STOPPED (UserInitiated: localecs stop -all)")
}

func TestCommandsNeedADirectoryWithSeveralRuns(t *testing.T) {
	t.Parallel()
	other, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"scenario.yaml", "web.json", "job.json"} {
		text, err := os.ReadFile(filepath.Join(looking(), name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), "name: looking", "name: other", 1)
		if err := os.WriteFile(filepath.Join(other, name), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lookInto(t, looking(), dir)
	lookInto(t, other, dir)
	ids := map[string]bool{}
	for _, name := range []string{"looking", "other"} {
		l := &looked{t: t, dir: filepath.Join(dir, name)}
		l.ask(0, "wait", "-running", "web")
		ids[l.state("web").Tasks[0].ID()] = true
	}
	got := call(t, "ps", "-dir", dir)
	want := "localecs ps: 2 runs are below " + dir + ": name one with -dir " + filepath.Join(dir, "looking") + " or -dir " + filepath.Join(dir, "other") + "\n"
	if len(ids) != 2 || got.code != 3 || got.stderr != want {
		t.Errorf("tasks %v, %+v, want %s", ids, got, want)
	}
}

// localecs serve ends when all tasks have stopped, and removes its socket.
func TestStopAllOfServe(t *testing.T) {
	t.Parallel()
	s := startServe(t, asRoot(t))
	s.aws(t, "register-task-definition", "--cli-input-json", "file://"+filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve", "web.json"))
	s.aws(t, "run-task", "--task-definition", "web", "--network-configuration", subnets)
	l := &looked{Process: s.Process, t: t, dir: s.dir}
	l.ask(0, "wait", "-running", "web")
	l.says("hello\n", "logs", "-tail", "1", "web")
	state := l.state()
	out, _ := l.ask(0, "stop", "-all")
	if len(state.Tasks) != 1 || out != state.Tasks[0].Name+"\n" || !strings.HasPrefix(out, "web-") || state.Command != "serve" {
		t.Errorf("%+v, stop says %q", state, out)
	}
	if code := l.Wait(); code != 0 {
		t.Errorf("serve: exit %d", code)
	}
	if _, err := os.Lstat(filepath.Join(s.dir, control.SocketName)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A run of task definitions alone is looked into, too.
func TestRunWithoutScenarioCanBeInspected(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := asRoot(t)("run", "-dir", dir, "-images", looking(), "-var", "kid="+self, filepath.Join(looking(), "job.json"))
	l := &looked{Process: p, t: t, dir: dir}
	l.ask(0, "wait", "-running", "job")
	if _, said := l.ask(1, "wait", "-running", "jab"); !strings.Contains(said, "no task jab; did you mean job?") { // at once: no other task can come
		t.Errorf("wait for a task that was not given: %q", said)
	}
	if out, _ := l.ask(0, "stop", "job"); out != "job\n" {
		t.Errorf("stop: %q", out)
	}
	if code := l.Wait(); code != 2 { // the job has failed
		t.Errorf("exit %d", code)
	}
}
