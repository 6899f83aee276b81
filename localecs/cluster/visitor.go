package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Visitor is a program of this machine.
type Visitor struct {
	Session runtime.Session
	// Path is the program, absolute; Dir is its working directory.
	Path, Dir string
	Env       []string
	// Umask is that of its user.
	Umask int
}

// RunOptions describe where a program runs.
type RunOptions struct {
	// Network is a network namespace; nil is this process's.
	Network *os.File
	// Names are files in place of those of the host, by their paths. Only those that
	// the host has are replaced, but resolv.conf has to be there.
	Names map[string]string
	// Temp is a directory for them, which the caller removes.
	Temp string
}

// resolvConf is the file without which no name is looked up.
const resolvConf = "/etc/resolv.conf"

// ResolverFiles returns the files with which the C library and others ask one name server, and no other source: neither
// what the host asks by itself, nor its daemons.
func ResolverFiles(resolvConfText string) map[string]string {
	return map[string]string{
		resolvConf: resolvConfText,
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n" +
			"networks: files\nprotocols: files\nservices: files\n",
	}
}

// Visit runs a program in the network, with an address for it alone, and waits for its
// end, as Run does. It sees the names of the cluster, and is killed by Close, too.
func (c *Cluster) Visit(ctx context.Context, v Visitor) (code int, err error) {
	leave, ok := c.visitors.Begin()
	if !ok {
		return runtime.CodeFailed, errClosed
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-c.leaving:
		case <-ctx.Done():
		}
	}()
	id := "visitor-" + rand.Text()
	ns, err := c.fabric.Attach(id)
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer ns.Close()
	temp := filepath.Join(c.volumeDir(), id)
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return runtime.CodeFailed, fmt.Errorf("make a directory for the names: %w", err)
	}
	defer os.RemoveAll(temp)
	search := strings.ToLower(c.options.Name) + ".local " + ns.SearchDomain
	names := fmt.Sprintf("nameserver %s\nsearch %s\noptions timeout:2 attempts:2\n", ns.Resolver, search)
	return Run(ctx, v, RunOptions{Network: ns.File(), Names: ResolverFiles(names), Temp: temp})
}

// Run runs the program and waits for its end. It is killed when ctx ends, with all
// of its process group, and what is left of that at its end, too. The code is the
// program's, 128+n after signal n, or one of the session exit codes with an error.
func Run(ctx context.Context, v Visitor, o RunOptions) (code int, err error) {
	done := make(chan struct{})
	host.OnThrowawayThread(func() {
		defer close(done)
		var pid int
		if pid, err = startVisitor(v, o); err != nil {
			code = runtime.Code(err)
			return
		}
		code = runtime.Follow(ctx, pid, v.Session, func() { _ = unix.Kill(-pid, unix.SIGKILL) })
	})
	<-done
	goruntime.KeepAlive(v)
	return code, err
}

// startVisitor starts the program from the calling thread, which is no good for anything else afterwards.
func startVisitor(v Visitor, o RunOptions) (pid int, err error) {
	if err := enter(o); err != nil {
		return 0, err
	}
	if err := unix.Chdir(v.Dir); err != nil {
		return 0, fmt.Errorf("enter %s: %w", v.Dir, notMissing(err))
	}
	unix.Umask(v.Umask)
	pid, err = syscall.ForkExec(v.Path, v.Session.Argv, &syscall.ProcAttr{
		Env:   v.Env,
		Files: []uintptr{v.Session.Stdin.Fd(), v.Session.Stdout.Fd(), v.Session.Stderr.Fd()},
		// Its terminal stays that of who has started us: it cannot be controlled by two.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("exec: %q: %w", v.Path, err)
	}
	return pid, nil
}

// notMissing keeps a missing directory from being taken for a missing program.
func notMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}

func enter(o RunOptions) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if o.Network != nil {
		if err := unix.Setns(int(o.Network.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the cluster's network: %w", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(o.Names)) {
		if err := replace(path, o.Names[path], o.Temp); err != nil {
			return err
		}
	}
	return nil
}

// replace shows the calling thread another file.
func replace(path, text, temp string) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && path != resolvConf {
		return nil
	}
	if err != nil {
		return fmt.Errorf("names need a %s on this machine: %w", resolvConf, notMissing(err))
	}
	source := filepath.Join(temp, filepath.Base(path))
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		return notMissing(err)
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount over %s: %w", target, notMissing(err))
	}
	return nil
}
