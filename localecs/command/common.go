package command

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// variables returns the variables of images: given ones, else paths found on this machine.
func variables(given map[string]string) (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &host.MissingError{What: "find this program", Need: "/proc", Instead: "mount it", Err: err}
	}
	bin := filepath.Dir(self)
	values := map[string]string{"bin": bin}
	for _, name := range []string{"consul", "envoy"} {
		if path := find(name, bin); path != "" {
			values[name] = path
		}
	}
	maps.Copy(values, given)
	return values, nil
}

// find looks for a program in .tools/bin beside the directory of this program and below the working
// directory, then in PATH.
func find(name, bin string) string {
	for _, dir := range []string{filepath.Join(filepath.Dir(bin), ".tools", "bin"), filepath.Join(".tools", "bin")} {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			if p, err = filepath.Abs(p); err == nil {
				return p
			}
		}
	}
	p, _ := exec.LookPath(name)
	return p
}

// Values of -runtime.
const (
	runtimeProcess = "process"
	runtimeDocker  = "docker"
)

// clusterFlags are those of the commands that open a cluster.
type clusterFlags struct {
	json     bool
	logLevel string
	network  network.Mode
	runtime  string
	docker   string // the address of the Docker engine to use, empty for none
	vars     map[string]string
}

// add declares the flags but -json, whose output differs.
func (f *clusterFlags) add(fs *flag.FlagSet) {
	f.vars = map[string]string{}
	fs.StringVar(&f.logLevel, "log-level", "WARN", "log `level` of the simulator itself")
	fs.TextVar(&f.network, "network", network.AWSVPC, "network `mode`: awsvpc (a namespace for each task) or host (this host's network)")
	fs.StringVar(&f.runtime, "runtime", runtimeProcess, "container `runtime`: process (processes of this host) or docker (the Docker engine at DOCKER_HOST or "+docker.DefaultAddress+", as root on its host; images that are not in the scenario are the engine's)")
	fs.Func("var", "set a variable of the scenario's images, `NAME=VALUE`; may be repeated", pairFlag(f.vars))
}

// chooseEngine sets docker.
func (f *clusterFlags) chooseEngine(inv *cli.Invocation) error {
	switch {
	case f.runtime == runtimeProcess:
		return nil
	case f.runtime != runtimeDocker:
		return exit.Usagef("-runtime: %q: want %s or %s", f.runtime, runtimeProcess, runtimeDocker)
	case f.network == network.Host:
		return exit.Usagef("-runtime docker and -network host are mutually exclusive")
	}
	f.docker = cmp.Or(inv.Getenv("DOCKER_HOST"), docker.DefaultAddress)
	if err := docker.CheckAddress(f.docker); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

// warn prints warnings of a command, or logs them with the message.
func (f *clusterFlags) warn(inv *cli.Invocation, command, message string, warnings []string) {
	for _, w := range warnings {
		switch {
		case f.json:
			inv.Log.Warn(message, logkey.Reason, w)
		case inv.Log.IsWarn():
			fmt.Fprintf(inv.Stderr, "localecs %s: warning: %s\n", command, w)
		}
	}
}

// withoutRoot runs the command again in a user namespace if this process lacks the privileges for
// containers and a network mode. done reports whether it has, err is its result. The child inherits
// the file, if there is one. A Docker engine cannot be used from there.
func withoutRoot(inv *cli.Invocation, mode network.Mode, engine string, inherit []*os.File) (done bool, err error) {
	if engine != "" {
		return false, nil // which checks its own needs
	}
	if host.Inside() {
		return false, host.CheckNamespace()
	}
	missing, err := host.MissingOnHost(slices.Concat(runtime.Needs(), mode.Needs())...)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	instead := ""
	if forContainers, err := host.MissingOnHost(runtime.Needs()...); err == nil && len(forContainers) == 0 {
		instead = "use -network host, which prints its limitations"
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	bin := filepath.Dir(self)
	code, err := host.Run(host.Options{
		Args: inv.Line, Stdin: inv.Stdin, Stdout: inv.Stdout, Stderr: inv.Stderr, Log: inv.Log,
		NewUIDMap: find("newuidmap", bin), NewGIDMap: find("newgidmap", bin), Missing: missing, Instead: instead, HostNetwork: mode == network.Host, Inherit: inherit,
	})
	switch {
	case err != nil:
		return true, err
	case code > 128: // no command returns such a code
		return true, fmt.Errorf("the process in the user namespace was terminated by signal %s; all its resources were released", syscall.Signal(code-128))
	}
	return true, &exit.CodeError{Code: code}
}

// openStateDir creates or empties a directory, and locks it until it is closed or this process ends.
// It refuses a directory that another run uses, and one with files that are not of a run.
func openStateDir(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	if err := claim(dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// claim locks the directory, then empties it.
func claim(dir *os.File) error {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("-dir: another localecs is using %s: wait until it has ended, or name another directory", dir.Name())
	}
	if err != nil {
		return fmt.Errorf("-dir: lock %s: %w", dir.Name(), err)
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(runFileNames(), e.Name()) && !(e.Name() == control.SocketName && e.Type() == fs.ModeSocket) {
			return fmt.Errorf("-dir: %s contains %q, which is not of a run: name another directory", dir.Name(), e.Name())
		}
	}
	for _, e := range entries {
		err := remove(filepath.Join(dir.Name(), e.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("-dir: empty %s: %w: it is of another user's run: remove it as root, or name another directory", dir.Name(), err)
		}
		if err != nil {
			return fmt.Errorf("-dir: empty %s: %w", dir.Name(), err)
		}
	}
	return nil
}

// dyingLimit bounds the wait for the processes of a killed run, which the kernel ends within
// milliseconds.
const dyingLimit = 5 * time.Second

// remove removes a tree that processes of a killed run may still write to.
func remove(path string) error {
	for started := time.Now(); ; <-time.After(5 * time.Millisecond) {
		err := os.RemoveAll(path)
		if !errors.Is(err, syscall.ENOTEMPTY) || time.Since(started) > dyingLimit {
			return err
		}
	}
}

// runFileNames returns the names of files that runs leave.
func runFileNames() []string {
	return []string{"logs", "volumes", scenario.DataFile, scenario.PageFile, control.EndFile}
}
