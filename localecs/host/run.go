package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// signalled is added to a signal's number to make the exit code of a child
// that the signal killed, as shells do it.
const signalled = 128

// Options are what to run, and with what.
type Options struct {
	// Args are this program's, without its name.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Log gets a line about the IDs.
	Log hclog.Logger
	// NewUIDMap and NewGIDMap are the paths of those programs, empty where there
	// are none.
	NewUIDMap, NewGIDMap string
	// Missing is what Missing has found, for messages; Instead is one more way
	// round, empty when there is none.
	Missing []string
	Instead string
	// HostNetwork leaves the child in this process's network.
	HostNetwork bool
	// Inherit are files for the child, such as what listens in this process's network. There Inherited
	// returns them.
	Inherit []*os.File
}

// MissingOnHost returns the names of the capabilities that this process lacks. A
// user namespace that was made without a network namespace has all of them and
// still cannot come back to its network: that is CAP_SYS_ADMIN, for the host's.
// Without a mount namespace it cannot copy a mount.
// Who does not ask for CAP_NET_ADMIN does not leave the network.
func MissingOnHost(caps ...Cap) ([]string, error) {
	have, err := Effective()
	if err != nil {
		return nil, err
	}
	missing := MissingCaps(have, caps...)
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if len(missing) == 0 && slices.Contains(caps, NetAdmin()) && !ownsNetwork() {
		missing = []string{SysAdmin().Name + " where its network is"}
	}
	if len(missing) == 0 && !ownsMounts() {
		missing = []string{SysAdmin().Name + " where its mounts are"}
	}
	return missing, nil
}

func ownsNetwork() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return false
	}
	defer ns.Close()
	return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET) == nil
}

// ownsMounts reports whether the mounts are this user namespace's: the kernel does
// not show an owner that is further out.
func ownsMounts() bool {
	ns, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		return false
	}
	defer ns.Close()
	owner, err := unix.IoctlRetInt(int(ns.Fd()), unix.NS_GET_USERNS)
	if err == nil {
		unix.Close(owner)
	}
	return !errors.Is(err, unix.EPERM)
}

// Run runs this program once more in new user, mount and network namespaces, or
// in the host's network, and returns its exit code, 128+n when signal n ended
// it. The child gets INT, TERM, HUP, TSTP and CONT from here alone, and dies
// with this process. The error is a
// *MissingError where the host refuses.
func Run(o Options) (code int, err error) {
	// The child dies with the thread that has made it, see endWithParent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := subscribe()
	defer signal.Stop(signals)
	c, err := o.caller()
	if err != nil {
		return 0, err
	}
	m := choose(c)
	child, err := o.start(m)
	var refused *helperError
	if errors.As(err, &refused) {
		m = single(c, refused.Error())
		child, err = o.start(m)
	}
	if err != nil {
		return 0, explain(err, o.instead(), readSetting)
	}
	o.announce(m)
	return child.run(signals)
}

// subscribe asks for the signals that end a run, and for those that hold it up.
// What is ignored stays so, as HUP under nohup.
func subscribe() chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCONT)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGTSTP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

func (o Options) caller() (caller, error) {
	c := caller{UID: os.Getuid(), GID: os.Getgid(), NewUIDMap: o.NewUIDMap, NewGIDMap: o.NewGIDMap}
	if u, err := user.LookupId(strconv.Itoa(c.UID)); err == nil {
		c.Name = u.Username
	}
	have, err := Effective()
	if err != nil {
		return c, err
	}
	c.SetIDs = len(MissingCaps(have, SetUID(), SetGID(), setFCap())) == 0
	if c.Own, err = CurrentIDs(); err != nil {
		return c, err
	}
	// A file that cannot be read gives nothing to anybody.
	uids, _ := os.ReadFile(subuidPath)
	gids, _ := os.ReadFile(subgidPath)
	c.UIDs, c.GIDs = parseSubIDs(string(uids), c.Name, c.UID), parseSubIDs(string(gids), c.Name, c.UID)
	return c, nil
}

type child struct {
	cmd  *exec.Cmd
	life *os.File
	// words is how many it waits for, one after each exec.
	words int
}

func (o Options) start(m mapping) (*child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	c := &child{cmd: exec.Command(SelfExe), life: write, words: 1}
	c.cmd.Args = append([]string{argv0Inside}, o.Args...)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	c.cmd.ExtraFiles = append([]*os.File{read}, o.Inherit...) // lifeFD, inheritFD and those after it
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		// Ctrl-C is for this process, which passes it on.
		Setpgid: true,
	}
	if o.HostNetwork {
		c.cmd.SysProcAttr.Cloneflags &^= unix.CLONE_NEWNET
	}
	if m.ByHelpers {
		c.cmd.Args[0], c.words = argv0Waiting, 2
	} else {
		c.cmd.SysProcAttr.UidMappings, c.cmd.SysProcAttr.GidMappings = sysMap(m.UIDs), sysMap(m.GIDs)
		c.cmd.SysProcAttr.GidMappingsEnableSetgroups = m.Groups
	}
	if err := c.cmd.Start(); err != nil {
		write.Close()
		return nil, err
	}
	if m.ByHelpers {
		err := callHelper(o.NewUIDMap, c.cmd.Process.Pid, m.UIDs)
		if err == nil {
			err = callHelper(o.NewGIDMap, c.cmd.Process.Pid, m.GIDs)
		}
		if err != nil {
			write.Close()
			_ = c.cmd.Wait() // it ends for want of a word
			return nil, &helperError{err}
		}
	}
	return c, nil
}

// helperError is about newuidmap or newgidmap.
type helperError struct{ err error }

func (e *helperError) Error() string { return e.err.Error() }

func callHelper(path string, pid int, extents []Extent) error {
	out, err := exec.Command(path, helperArgs(pid, extents)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, bytes.TrimSpace(out))
	}
	return nil
}

func (o Options) announce(m mapping) {
	args := []any{logkey.UIDs, describe(m.UIDs), logkey.GIDs, describe(m.GIDs)}
	if m.Lacks != "" {
		args = append(args, logkey.Reason, "one user for all containers: "+m.Lacks)
	}
	o.Log.Warn("running rootless, in a user namespace", args...)
}

func (c *child) run(signals <-chan os.Signal) (code int, err error) {
	defer c.life.Close()
	if _, err := c.life.Write(make([]byte, c.words)); err != nil {
		return 0, fmt.Errorf("run in a user namespace: %w", errors.Join(err, c.cmd.Wait()))
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.cmd.Process.Signal(s) // one that has ended needs none
				if s == syscall.SIGTSTP {
					_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
				}
			case <-ended:
				return
			}
		}
	}()
	err = c.cmd.Wait()
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		return 0, fmt.Errorf("run in a user namespace: %w", err)
	case ok && status.Signaled():
		return signalled + int(status.Signal()), nil
	}
	return c.cmd.ProcessState.ExitCode(), nil
}

func (o Options) instead() string {
	way := "run as root"
	if os.Getuid() == 0 {
		way = "give root " + strings.Join(o.Missing, ", ")
	}
	if o.Instead != "" {
		way += ", or " + o.Instead
	}
	return way
}
