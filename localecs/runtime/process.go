package runtime

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processSteps make the process what the program expects to be. The order
// matters: what needs privileges first, the signal at the simulator's death
// (PR_SET_PDEATHSIG) last, because a change of user cancels it.
func processSteps(c *stageConfig) []step {
	return []step{
		{"set the host name", func() error { return setHostname(c.Hostname) }, true},
		{"set limits", func() error { return setLimits(c.Limits) }, false},
		{"hand over output", func() error { return ownOutput(c.UID, c.GID) }, false},
		{"enter " + c.Dir, func() error { return unix.Chdir(c.Dir) }, false},
		{"restrict privileges", c.restrict, true},
		{"become the user", func() error { return c.setUser() }, false},
		{"tie to the simulator", endWithParent, true},
		{"reset signals", resetSignals, true},
	}
}

func setHostname(name string) error {
	if name == "" {
		return nil
	}
	return unix.Sethostname([]byte(name))
}

// setLimits goes through package syscall, which otherwise puts back the limit
// on open files that the Go runtime found at start.
func setLimits(limits []rlimit) error {
	for _, l := range limits {
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
			return fmt.Errorf("limit %d to %d:%d: %w", l.Resource, l.Soft, l.Hard, err)
		}
	}
	return nil
}

// ownOutput lets the user open /dev/stdout and /dev/stderr by name.
func ownOutput(uid, gid int) error {
	for fd := 1; fd <= 2; fd++ {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFIFO {
			if err := unix.Fchown(fd, uid, gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// restrict takes from the calling thread, and from what it executes, every
// capability the container does not have, and the way to gain more. The thread
// cannot get them back.
func (c *stageConfig) restrict() error {
	var kept uint64
	if !c.NoCapabilities {
		kept = c.Capabilities
	}
	for n := range 64 {
		if kept&(1<<n) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel knows no more
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", n, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// setUser changes the user of this thread, which is the one that will execute
// the program. The library's functions would ask all threads.
func (c *stageConfig) setUser() error {
	uid, gid := uintptr(c.UID), uintptr(c.GID)
	calls := [][4]uintptr{{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, gid, gid, gid}, {unix.SYS_SETRESUID, uid, uid, uid}}
	if c.KeepGroups {
		calls = calls[1:]
	}
	for _, call := range calls {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	unix.Umask(0o022)
	return nil
}

// endWithParent asks for SIGKILL when the simulator dies. It is a setting of the thread
// that executes the program, and comes too late when the simulator is dead
// already: then no process holds the other end of the status pipe.
func endWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: statusFD}}
	if _, err := unix.Poll(fds, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		return errors.New("the simulator exited")
	}
	return nil
}

// resetSignals catches every signal: what is caught becomes the default again
// when the program is executed, while what is ignored, as under nohup, would
// stay ignored.
func resetSignals() error {
	signal.Notify(make(chan os.Signal, 1))
	// 32 and 33 belong to the C library, so a runtime linked with it leaves
	// them alone; GNU make starts its commands with both ignored.
	var byDefault [8]uint64 // struct sigaction of all zeros, and room to spare
	for _, s := range []uintptr{32, 33} {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		if errno != 0 {
			return fmt.Errorf("signal %d: %w", s, errno)
		}
	}
	return nil
}
