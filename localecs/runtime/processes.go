package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mountNamespacePath is where a process's mount namespace is.
func mountNamespacePath(pid int) string { return fmt.Sprintf("/proc/%d/ns/mnt", pid) }

// mountNamespace names a process's mount namespace; empty when it has ended.
// A name is for another namespace as soon as nothing holds the first.
func mountNamespace(pid int) string {
	name, _ := os.Readlink(mountNamespacePath(pid))
	return name
}

// eachIn signals every process with that mount namespace for which ok holds,
// and returns how many were there to get it.
func eachIn(mounts string, s syscall.Signal, ok func(pid int) bool) int {
	n := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || mountNamespace(pid) != mounts {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Again, now that the number cannot go to another process.
		if mountNamespace(pid) == mounts && ok(pid) && !errors.Is(unix.PidfdSendSignal(fd, s, nil, 0), unix.ESRCH) {
			n++
		}
		unix.Close(fd)
	}
	return n
}

// killAllIn kills every process with that mount namespace, as the end of PID 1
// does where a container has a pid namespace of its own. It looks until there
// is none, since what it kills may be forking, or until time is up: a process
// that waits for a disk cannot be killed. held is that mount namespace: while
// it is open no new container can get its name.
func killAllIn(held *os.File) {
	st, err := held.Stat()
	if err != nil {
		return
	}
	mounts := fmt.Sprintf("mnt:[%d]", st.Sys().(*syscall.Stat_t).Ino)
	for end := time.Now().Add(outputGrace); time.Now().Before(end); {
		if eachIn(mounts, unix.SIGKILL, func(int) bool { return true }) == 0 {
			return
		}
	}
}

// SignalProgram sends a signal to every process of the container that runs the
// program of that name, the last element of its path, and returns how many
// there were: below an init or a supervisor the program is not PID 1.
func (c *Container) SignalProgram(name string, s syscall.Signal) int {
	mounts := mountNamespace(c.child.pid)
	raw, err := c.pidfd.SyscallConn()
	if err != nil || mounts == "" {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) {
		// Only now is it known that the number was still the container's.
		if unix.PidfdSendSignal(int(fd), 0, nil, 0) != nil {
			return
		}
		n = eachIn(mounts, s, func(pid int) bool {
			exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			return filepath.Base(exe) == name
		})
	})
	return n
}
