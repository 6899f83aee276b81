package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestMain(m *testing.M) {
	host.Dispatch(Roles()...)
	roles := dockerengine.Roles()
	roles["run"] = run
	testkit.RunRole(roles)
	os.Exit(m.Run())
}

var shell = runtime.Image{
	Name: "shell", Programs: map[string]string{"/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep", "/bin/id": "/usr/bin/id", "/bin/stat": "/usr/bin/stat", "/bin/stty": "/bin/stty"},
	Files: map[string]string{"/etc/shown": "/usr/share"},
	Env:   []string{"FROM=image"}, Volumes: []runtime.Dir{{Path: "/owned", UID: 42, GID: 43}}, Users: map[string]string{"envoy": "5995:5990"},
}

func open(t *testing.T, address, dir string) *Engine {
	t.Helper()
	e, err := Open(Options{Address: address, Dir: dir, Images: map[string]runtime.Image{"shell": shell}, Log: hclog.NewNullLogger()})
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// newGroup makes the group of a task without links.
func newGroup(t *testing.T, e *Engine, s runtime.GroupSpec) runtime.Group {
	t.Helper()
	ns, err := e.Namespace(s.Name, "ip-10-0-0-1.ec2.internal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	s.NetNS = ns
	g, err := e.Group(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// text collects output.
type text struct {
	mu  sync.Mutex
	all strings.Builder
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// TestEngine runs the tests that use a real engine, one after the other.
func TestEngine(t *testing.T) {
	engine := dockerengine.Start(t)
	e := open(t, engine.Host, t.TempDir())
	g := newGroup(t, e, runtime.GroupSpec{Name: "task"})
	start := func(t *testing.T, s runtime.Spec) (*runtime.Container, *text) {
		t.Helper()
		i, err := e.Pull(t.Context(), "shell")
		if err != nil {
			t.Fatal(err)
		}
		out := new(text)
		s.Image, s.Stdout, s.Stderr = i, out, out
		c, err := g.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return c, out
	}
	t.Run("container", func(t *testing.T) {
		volume := t.TempDir()
		c, out := start(t, runtime.Spec{
			Name: "web/a", Args: []string{"/bin/sh", "-c", "hostname 2>/dev/null; read h </etc/hostname; echo $h $FROM $OWN; id -u; id -g; stat -c %u:%g /owned; stat -c %F /etc/shown; echo oops >&2; exit 7"},
			Env: []string{"OWN=definition"}, User: "envoy", Hostname: "ip-10-0-0-1.ec2.internal",
			Mounts: []runtime.Mount{{Source: volume, Target: "/owned"}},
		})
		if exit := c.Exit(); exit.Code != 7 || exit.OOM {
			t.Errorf("%+v", exit)
		}
		for _, want := range []string{"ip-10-0-0-1.ec2.internal image definition\n5995\n5990\n42:43\ndirectory\n", "oops\n"} {
			got := out.String()
			if want != "oops\n" { // the streams are not in step
				got = strings.ReplaceAll(got, "oops\n", "")
			}
			if !strings.Contains(got, want) {
				t.Errorf("%q, want %q in it", out, want)
			}
		}
		var st syscall.Stat_t
		if err := syscall.Stat(volume, &st); err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, "owner of the volume", [2]uint32{st.Uid, st.Gid}, [2]uint32{42, 43})
	})
	t.Run("file of the host", func(t *testing.T) {
		hosts := filepath.Join(t.TempDir(), "hosts")
		if err := os.WriteFile(hosts, []byte("127.0.0.1 shared\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, out := start(t, runtime.Spec{
			Name: "web/file", Args: []string{"/bin/sh", "-c", "read h </etc/hosts; echo $h; echo changed >> /etc/hosts"}, User: "root",
			Hosts: "127.0.0.1 own\n", Mounts: []runtime.Mount{{Source: hosts, Target: "/etc/hosts"}},
		})
		if exit := c.Exit(); exit.Code != 0 {
			t.Errorf("%+v", exit)
		}
		if got := out.String(); !strings.Contains(got, "127.0.0.1 shared\n") {
			t.Errorf("the container has %q", got)
		}
		if text, err := os.ReadFile(hosts); err != nil || string(text) != "127.0.0.1 shared\nchanged\n" {
			t.Errorf("the host has %q, %v", text, err)
		}
	})
	t.Run("probes", func(t *testing.T) {
		c, _ := start(t, runtime.Spec{Name: "web/b", Args: []string{"/bin/sleep", "1000"}})
		testkit.Eventually(t, "a probe with its output", func() bool { // of which a slow engine may lose the end
			got := c.Exec(t.Context(), runtime.Shell("echo out; echo err >&2; exit 3"))
			if got.Code != 3 {
				t.Errorf("%+v", got)
			}
			return strings.Contains(got.Output, "out\n") && strings.Contains(got.Output, "err\n")
		})
		late := runtime.Shell("sleep 1000 & sleep 999")
		late.Timeout = time.Second
		for alone := true; alone; late.Timeout *= 2 { // a busy engine needs more to begin
			before := c.SignalProgram("sleep", 0)
			got := c.Exec(t.Context(), late)
			want := runtime.ExecResult{Code: runtime.CodeTimedOut, TimedOut: true}
			// Only the probe was killed: it leaves two orphans.
			if alone = c.SignalProgram("sleep", 0) != before+2; !alone && got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if late.Timeout > testkit.Patience {
				t.Fatal("the probe's children are killed, too, or never there")
			}
		}
		// Who leaves children behind has ended.
		if got := c.Exec(t.Context(), runtime.Shell("sleep 1000 & exit 4")); got.Code != 4 {
			t.Errorf("%+v", got)
		}
		if got := c.Exec(t.Context(), runtime.ExecSpec{Argv: []string{"/bin/none"}}); got.Code != runtime.CodeNotStarted || !strings.HasPrefix(got.Output, refused) {
			t.Errorf("%+v", got)
		}
		c.KillForMemory()
		if exit := c.Exit(); exit.Code != 137 || !exit.OOM {
			t.Errorf("%+v", exit)
		}
		if got := c.Exec(t.Context(), runtime.Shell("exit 0")); got.Code != runtime.CodeNotStarted {
			t.Errorf("after its end: %+v", got)
		}
	})
	t.Run("sessions", func(t *testing.T) {
		c, _ := start(t, runtime.Spec{Name: "web/c", Args: []string{"/bin/sleep", "1000"}})
		sessions(t, c)
		c.Kill()
		<-c.Done()
	})
	t.Run("own image", func(t *testing.T) { ownImage(t, engine, e) })
	t.Run("killed", func(t *testing.T) { killed(t, engine) })
}

// ownImage: an image that the engine has is used with its defaults, and one that it does not have is asked for.
func ownImage(t *testing.T, engine *dockerengine.Engine, e *Engine) {
	name := engine.ID + "-own:1"
	dir := t.TempDir()
	const file = "FROM localecs/shell\nSTOPSIGNAL SIGINT\nENTRYPOINT [\"/bin/sh\"]\nUSER 7\nENV MORE=1\nHEALTHCHECK --interval=1s CMD exit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	engine.Run(t, "build", "-t", name, dir)
	i, err := e.Pull(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "stop signal", i.StopSignal, "SIGINT")
	testkit.Equal(t, "entry point", i.Entrypoint[0], "/bin/sh")
	testkit.Equal(t, "user", i.User, "7")
	if len(i.Volumes) != 1 || i.Volumes[0].Path != "/owned" {
		t.Errorf("volumes %+v, want /owned", i.Volumes)
	}
	g := newGroup(t, e, runtime.GroupSpec{Name: "own"})
	out := new(text)
	c, err := g.Start(t.Context(), runtime.Spec{Name: "own/a", Image: i, Args: i.Argv(nil, []string{"-c", "echo $FROM $MORE; id -u"}), Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	if exit := c.Exit(); exit.Code != 0 || out.String() != "image 1\n7\n" {
		t.Errorf("%+v: %q", exit, out)
	}
	c, err = g.Start(t.Context(), runtime.Spec{Name: "own/checked", Image: i, Args: []string{"/bin/sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	id := engine.Run(t, "ps", "-q", "--filter", "name=own-checked")
	if health := engine.Run(t, "inspect", "-f", "{{json .State.Health}} {{json .Config.Healthcheck}}", id); !strings.HasPrefix(health, `null {"Test":["NONE"]`) {
		t.Errorf("the engine checks by itself: %s", health)
	}
	c.Kill()
	<-c.Done()
	if _, err := e.Pull(t.Context(), "registry.example.com/none:1"); err == nil || !strings.Contains(err.Error(), "registry.example.com") {
		t.Errorf("%v, want what the engine says of its registry", err)
	}
}

// killed: nothing is left of a run that was killed, by its watcher or, when that was
// killed as well, by the next run on the same directory.
func killed(t *testing.T, engine *dockerengine.Engine) {
	containers := func(dir string) int {
		return len(strings.Fields(engine.Run(t, "ps", "-aq", "--filter", "label="+labelDir+"="+dir))) +
			len(strings.Fields(engine.Run(t, "volume", "ls", "-q", "--filter", "label="+labelDir+"="+dir)))
	}
	for _, also := range []bool{false, true} {
		dir := t.TempDir()
		p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("run", engine.Host, dir)...)
		if line := p.Line(); line != "ready" {
			t.Fatal(line)
		}
		if n := containers(dir); n != 3 {
			t.Errorf("%d containers and volumes, want a pause, one and its volume", n)
		}
		if also {
			if err := syscall.Kill(watcherOf(t, p.PID), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if also {
			open(t, engine.Host, dir)
			if n := containers(dir); n != 0 {
				t.Errorf("%d containers and volumes are left after the next start", n)
			}
			continue
		}
		testkit.Eventually(t, "nothing is left", func() bool { return containers(dir) == 0 })
	}
}

// watcherOf returns the process ID of a simulator's watcher.
func watcherOf(t *testing.T, simulator int) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", simulator))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if pid, err := strconv.Atoi(child); err == nil && strings.HasPrefix(string(command), argv0Watcher+"\x00") {
				return pid
			}
		}
	}
	t.Fatalf("process %d has no watcher", simulator)
	return 0
}

// run runs a simulator that will be killed.
func run(args []string) int {
	e, err := Open(Options{Address: args[0], Dir: args[1], Images: map[string]runtime.Image{"shell": shell}, Log: hclog.NewNullLogger()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ns, err := e.Namespace("task", "host")
	if err == nil {
		var g runtime.Group
		if g, err = e.Group(runtime.GroupSpec{Name: "task", NetNS: ns}); err == nil {
			data := filepath.Join(args[1], "data")
			err = errors.Join(os.Mkdir(data, 0o755), func() error {
				_, err := g.Start(context.Background(), runtime.Spec{Name: "task/a", Image: shell, Args: []string{"/bin/sleep", "1000"}, Mounts: []runtime.Mount{{Source: data, Target: "/data"}}})
				return err
			}())
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	<-context.Background().Done()
	return 0
}

// A user who cannot use an engine sees once what is needed.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	address := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	_, err := Open(Options{Address: address, Dir: t.TempDir(), Log: hclog.NewNullLogger()})
	var missing *host.MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("%v, want a MissingError", err)
	}
	if want := "the host lacks one that answers at " + address + "; start one there, or name another one by DOCKER_HOST"; os.Geteuid() == 0 && !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// The first reason counts.
func TestLost(t *testing.T) {
	t.Parallel()
	e := newEngine(Options{}, nil)
	e.lose(errors.New("first"))
	e.lose(errors.New("second"))
	<-e.Lost()
	if err := e.Err(); err == nil || err.Error() != "first" {
		t.Errorf("%v, want first", err)
	}
}

// An engine that takes calls and answers none is distinguished from one that is slow.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Open(Options{Address: "unix://" + socket, Dir: t.TempDir()})
	if _, missing := errors.AsType[*host.MissingError](err); !missing {
		t.Fatalf("%v, want a MissingError", err)
	}
	if os.Geteuid() == 0 && !strings.Contains(err.Error(), "one that answers at unix://"+socket) {
		t.Error(err)
	}
}
