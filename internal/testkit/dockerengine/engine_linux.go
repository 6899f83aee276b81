package dockerengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/vishvananda/netlink"
)

// role is what this test binary plays before it becomes dockerd.
const role = "docker-engine"

// Roles returns what TestMain gives to testkit.RunRole.
func Roles() map[string]func([]string) int {
	return map[string]func([]string) int{role: become}
}

// Limit is how long a call of the docker client may take: an image is built
// under load.
const Limit = 2 * time.Minute

// Engine is a Docker engine, and what one test makes in it. Everything has ID as
// a label (--label ID), as the start of an image's name, or is of the compose
// project ID: the test's end removes that.
type Engine struct {
	// ID is of this test process, and fit for names of images and projects.
	ID string
	// Docker is the client's program.
	Docker string
	// Env is the environment in which the client finds the engine.
	Env []string
	// Host is the engine's address, as DOCKER_HOST has it.
	Host string
}

// Start takes the engine that runs, or starts one that can be reached by its
// socket only and leaves nothing. Without one the test is skipped; it fails where
// CI is true.
func Start(t testing.TB) *Engine {
	t.Helper()
	e := &Engine{ID: fmt.Sprintf("%s%d", cgroupPrefix, os.Getpid()), Docker: "docker", Env: os.Environ()}
	if _, code := e.Try("version"); code == 0 {
		t.Log("using the Docker engine that runs")
		if e.Host = os.Getenv("DOCKER_HOST"); e.Host == "" {
			e.Host = "unix:///var/run/docker.sock"
		}
		t.Cleanup(func() { e.sweep(t) })
		return e
	}
	if os.Geteuid() != 0 {
		testkit.Missing(t, "no Docker engine runs, and only root can start one")
	}
	unpacked := filepath.Join(testkit.Root(), ".tools", "docker")
	e.Env = append(e.Env, "PATH="+filepath.Join(unpacked, "bin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+filepath.Join(unpacked, "lib")+":"+os.Getenv("LD_LIBRARY_PATH"),
		"XTABLES_LIBDIR="+extensions(unpacked))
	e.Docker = filepath.Join(unpacked, "bin", "docker")
	if _, err := os.Stat(e.Docker); err != nil {
		e.Docker = "docker"
	}
	e.start(t)
	return e
}

// extensions returns where iptables has what it loads: beside the unpacked one, or nowhere else than where it looks
// itself.
func extensions(unpacked string) string {
	found, _ := filepath.Glob(filepath.Join(unpacked, "root/usr/lib/*/xtables"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// start runs dockerd as the first process of its own namespaces.
func (e *Engine) start(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	e.Host = "unix://" + filepath.Join(dir, "docker.sock")
	args := testkit.SelfArgs(role, dir, e.Host, e.ID)
	var log bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.Env, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL, // whatever ends this test ends the engine
	}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// It dies with the thread that started it, which other tests may end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		testkit.Missing(t, "start a Docker engine: "+err.Error())
	}
	e.Env = append(e.Env, "DOCKER_HOST="+e.Host)
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(testkit.Patience):
			t.Error("the engine did not end")
			cmd.Process.Kill() // and with it, its namespaces
			<-ended
		}
		nothingLeft(t, dir)
	})
	for deadline := time.Now().Add(testkit.Patience); ; {
		if _, code := e.Try("version"); code == 0 {
			t.Cleanup(func() { e.sweep(t) })
			return
		}
		select {
		case err := <-ended:
			ended <- err
			testkit.Missing(t, fmt.Sprintf("a Docker engine does not run here: %v\n%s", err, &log))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Docker engine is not ready\n%s", &log)
		}
	}
}

// become becomes dockerd. Whatever it writes besides the socket is in memory
// that goes with the mount namespace.
func become(args []string) int {
	dir, socket, id := args[0], args[1], args[2]
	own := filepath.Join(dir, "engine")
	err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		loopbackUp(), // published ports listen there
		os.Mkdir(own, 0o755),
		syscall.Mount("engine", own, "tmpfs", 0, "mode=755"))
	for _, path := range []string{"/etc", "/opt", "/run"} {
		upper, work := filepath.Join(own, "upper"+path), filepath.Join(own, "work"+path)
		err = errors.Join(err, os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755),
			syscall.Mount("overlay", path, "overlay", 0, "lowerdir="+path+",upperdir="+upper+",workdir="+work))
	}
	if err == nil {
		var dockerd string
		if dockerd, err = exec.LookPath("dockerd"); err == nil {
			err = syscall.Exec(dockerd, []string{
				dockerd, "--host=" + socket, "--pidfile=" + own + "/pid",
				"--data-root=" + own + "/data", "--exec-root=" + own + "/exec", "--cgroup-parent=/" + id,
				"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
				"--exec-opt=native.cgroupdriver=cgroupfs", "--log-level=warn",
			}, os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback interface: %w", err)
	}
	return netlink.LinkSetUp(lo)
}

// Output is what a command wrote.
type Output struct{ Stdout, Stderr string }

// Command returns a call of the docker client.
func (e *Engine) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.Docker, args...)
	cmd.Env = e.Env
	return cmd
}

// Finish runs a command; the code is -1 when it cannot be run. What it leaves running
// does not hold up the test.
func Finish(cmd *exec.Cmd) (Output, int) {
	var out, errs bytes.Buffer
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return Output{"", err.Error()}, -1
	}
	return Output{out.String(), errs.String()}, cmd.ProcessState.ExitCode()
}

// Try runs the docker client.
func (e *Engine) Try(args ...string) (Output, int) {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	return Finish(e.Command(ctx, args...))
}

// Run runs the docker client, which has to succeed, and returns what it wrote
// without space around it.
func (e *Engine) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, code := e.Try(args...)
	if code != 0 {
		t.Fatalf("docker %s: exit code %d: %s%s", strings.Join(args, " "), code, out.Stdout, out.Stderr)
	}
	return strings.TrimSpace(out.Stdout)
}
