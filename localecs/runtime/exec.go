package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const maxOutput = 4096

const pipeSize = 64 << 10

// Codes of probes that did not exit by themselves.
const (
	// CodeNotStarted is Fargate's for a probe that could not be executed.
	CodeNotStarted = 255
	// CodeTimedOut is the container engine's.
	CodeTimedOut = -1
)

// ExecSpec is a process to run inside a container.
type ExecSpec struct {
	// Argv is executed directly, without a shell.
	Argv []string
	// Timeout ends the process; 0 leaves that to the context.
	Timeout time.Duration
}

// Shell returns the ExecSpec of a CMD-SHELL line.
func Shell(line string) ExecSpec { return ExecSpec{Argv: []string{"/bin/sh", "-c", line}} }

// ExecResult is the result of a process.
type ExecResult struct {
	// Code is the exit code, 128+n after signal n, or one of the above.
	Code int
	// Output is standard output and error together, at most 4 KiB.
	Output string
	// TimedOut: the process was killed because its time was up.
	TimedOut bool
}

// Exec runs a process in the container: same namespaces, user, working directory, environment, limits, and a root that
// is read-only if the container's is. When time is up only this process is killed, not its children.
func (c *Container) Exec(ctx context.Context, s ExecSpec) ExecResult {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return notStarted(err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return notStarted(err)
	}
	defer read.Close()
	output := newTail(read)
	code, err := c.Attach(ctx, Session{Argv: s.Argv, Stdin: null, Stdout: write, Stderr: write, Alone: true})
	write.Close()
	result := ExecResult{Code: code, Output: output.end()}
	switch {
	case ctx.Err() != nil && (err != nil || code == CodeKilled):
		result.Code, result.TimedOut = CodeTimedOut, errors.Is(ctx.Err(), context.DeadlineExceeded)
	case err != nil:
		return notStarted(err)
	}
	return result
}

// notStarted words a failure as Fargate does.
func notStarted(err error) ExecResult {
	return ExecResult{
		Code:   CodeNotStarted,
		Output: "OCI runtime exec failed: exec failed: unable to start container process: " + err.Error() + ": unknown",
	}
}

// enter moves the calling thread into the container permanently. The pid namespace applies to its children only.
func (n *native) enter() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare file system state: %w", err)
	}
	raw, err := n.child.pidfd.SyscallConn()
	if err != nil {
		return ErrEnded
	}
	kinds := unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if n.config.JoinNet { // else it is ours, which a user namespace may not even join
		kinds |= unix.CLONE_NEWNET
	}
	var joined error
	err = raw.Control(func(fd uintptr) { joined = unix.Setns(int(fd), kinds) })
	if err != nil || errors.Is(joined, unix.ESRCH) {
		return ErrEnded
	}
	if joined != nil {
		return fmt.Errorf("join the container's namespaces: %w", joined)
	}
	unix.Umask(0o022)
	if err := unix.Chdir(n.config.Dir); err != nil {
		return fmt.Errorf("enter %s: %w", n.config.Dir, err)
	}
	return n.config.restrict()
}

// execute forks from the calling thread, which is inside the container. With
// terminal the first file becomes the controlling terminal.
func (n *native) execute(argv, env []string, files [3]uintptr, terminal bool) (pid int, err error) {
	path, err := lookPath(argv[0], n.config.Env)
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env:   env,
		Files: files[:],
		Sys: &syscall.SysProcAttr{
			Setsid:  true,
			Setctty: terminal,
			// No Pdeathsig: the library compares parents by number, and from
			// inside the namespace ours is 0. The container's death is enough.
			Credential: &syscall.Credential{Uid: uint32(n.config.UID), Gid: uint32(n.config.GID), NoSetGroups: n.config.KeepGroups},
		},
	})
	if errors.Is(err, unix.ENOMEM) {
		return 0, ErrEnded // PID 1 is gone, the namespace takes no process in
	}
	if err != nil {
		return 0, fmt.Errorf("exec: %q: %w", strings.Join(argv, " "), err)
	}
	for _, l := range n.config.Limits {
		// The process runs already; if it has ended too, it needs no limit.
		_ = unix.Prlimit(pid, l.Resource, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}, nil)
	}
	return pid, nil
}

type tail struct {
	from *os.File
	kept []byte
	done chan struct{}
}

func newTail(from *os.File) *tail {
	t := &tail{from: from, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		buf := make([]byte, maxOutput)
		for {
			n, err := from.Read(buf)
			t.keep(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) keep(b []byte) { t.kept = append(t.kept, b[:min(len(b), maxOutput-len(t.kept))]...) }

// end returns the output after the process has ended, without waiting for
// children that hold the pipe: what is in the pipe now is all that counts.
func (t *tail) end() string {
	_ = t.from.SetReadDeadline(time.Now())
	<-t.done
	_ = t.from.SetReadDeadline(time.Time{})
	if raw, err := t.from.SyscallConn(); err == nil {
		_ = raw.Read(func(fd uintptr) bool {
			// One read empties a pipe; more would follow a child that goes on writing.
			buf := make([]byte, pipeSize)
			if n, err := unix.Read(int(fd), buf); err == nil && n > 0 {
				t.keep(buf[:n])
			}
			return true
		})
	}
	return string(t.kept)
}
