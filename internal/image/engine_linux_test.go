package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"engine": engineRole})
	os.Exit(m.Run())
}

// engine is a Docker engine, and what one test run makes in it: everything
// has id in its name or as its label.
type engine struct {
	id     string
	docker string // the client
	env    []string
}

// startEngine takes the engine that runs, or starts one of its own, which can
// be reached by its socket only and leaves nothing.
func startEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{id: fmt.Sprintf("%s%d", cgroupPrefix, os.Getpid()), docker: "docker", env: os.Environ()}
	if _, code := e.try("version"); code == 0 {
		t.Log("using the Docker engine that runs")
		t.Cleanup(func() { e.sweep(t) })
		return e
	}
	if os.Geteuid() != 0 {
		testkit.Missing(t, "no Docker engine runs, and only root can start one")
	}
	unpacked := filepath.Join(testkit.Root(), ".tools", "docker")
	e.env = append(e.env, "PATH="+filepath.Join(unpacked, "bin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+filepath.Join(unpacked, "lib")+":"+os.Getenv("LD_LIBRARY_PATH"))
	e.docker = filepath.Join(unpacked, "bin", "docker")
	if _, err := os.Stat(e.docker); err != nil {
		e.docker = "docker"
	}
	return e.start(t)
}

// start runs dockerd as the first process of its own namespaces.
func (e *engine) start(t *testing.T) *engine {
	t.Helper()
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(dir, "docker.sock")
	args := testkit.SelfArgs("engine", dir, socket, e.id)
	var log bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.env, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL, // whatever ends this test ends the engine
	}
	if err := cmd.Start(); err != nil {
		testkit.Missing(t, "start a Docker engine: "+err.Error())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	e.env = append(e.env, "DOCKER_HOST="+socket)
	t.Cleanup(func() {
		e.sweep(t)
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(testkit.Patience):
			t.Error("the engine did not end")
			cmd.Process.Kill() // and with it, its namespaces
			<-ended
		}
		nothingLeft(t, dir, e.id)
	})
	for deadline := time.Now().Add(testkit.Patience); ; {
		if _, code := e.try("version"); code == 0 {
			return e
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

// engineRole becomes dockerd. Whatever it writes besides the socket is in
// memory that goes with the mount namespace.
func engineRole(args []string) int {
	dir, socket, id := args[0], args[1], args[2]
	own := filepath.Join(dir, "engine")
	err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
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

// sweep removes what the tests made.
func (e *engine) sweep(t *testing.T) {
	t.Helper()
	for _, what := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq", "--filter", "label=" + e.id}, []string{"rm", "-f", "-v"}},
		{[]string{"volume", "ls", "-q", "--filter", "label=" + e.id}, []string{"volume", "rm"}},
		{[]string{"image", "ls", "-q", "--filter", "reference=" + e.id + "*"}, []string{"image", "rm", "-f"}},
	} {
		list, code := e.try(what.list...)
		names := strings.Fields(list.stdout)
		slices.Sort(names) // an image has a line for each of its names
		names = slices.Compact(names)
		if code == 0 && len(names) > 0 {
			list, code = e.try(append(what.remove, names...)...)
		}
		if code != 0 {
			t.Errorf("clean up: %s", list.stderr)
		}
	}
}

// cgroupPrefix begins the names of our control groups.
const cgroupPrefix = "consul-ecs-test-"

// nothingLeft removes the control groups of the engine, and of those whose test
// was killed, and looks for anything else.
func nothingLeft(t *testing.T, dir, id string) {
	t.Helper()
	groups, _ := filepath.Glob("/sys/fs/cgroup/" + cgroupPrefix + "*")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupPrefix + "*")
	for _, group := range append(groups, more...) {
		pid := strings.TrimPrefix(filepath.Base(group), cgroupPrefix)
		if _, err := os.Stat("/proc/" + pid); err == nil && pid != strconv.Itoa(os.Getpid()) {
			continue // another test's
		}
		testkit.Eventually(t, group+" is empty", func() bool { return removeGroup(group) == nil })
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("mounts are left (error %v)", err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, _ := os.ReadFile(file) // it may have ended
		if bytes.Contains(line, []byte(dir)) {
			t.Errorf("a process is left: %q", line)
		}
	}
}

// removeGroup removes a control group and those below it.
func removeGroup(path string) error {
	var groups []string
	filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for _, group := range slices.Backward(groups) {
		if err := os.Remove(group); err != nil {
			return err
		}
	}
	return nil
}

// output is what a command wrote.
type output struct{ stdout, stderr string }

// command is a call of the docker client.
func (e *engine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.docker, args...)
	cmd.Env = e.env
	return cmd
}

// finish runs a command; the code is -1 when it cannot be run.
func finish(cmd *exec.Cmd) (output, int) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return output{"", err.Error()}, -1
	}
	return output{out.String(), errs.String()}, cmd.ProcessState.ExitCode()
}

// limit is how long the docker client may take: an image is built under load.
const limit = 2 * time.Minute

// try runs the docker client.
func (e *engine) try(args ...string) (output, int) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return finish(e.command(ctx, args...))
}

// run runs the docker client, which has to succeed.
func (e *engine) run(t *testing.T, args ...string) string {
	t.Helper()
	out, code := e.try(args...)
	if code != 0 {
		t.Fatalf("docker %s: exit code %d: %s%s", strings.Join(args, " "), code, out.stdout, out.stderr)
	}
	return strings.TrimSpace(out.stdout)
}
