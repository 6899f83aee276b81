package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/localecs/runtime/stage"
	"golang.org/x/sys/unix"
)

// PIDs is a pid namespace that containers share: pidMode task. Its PID 1 is
// ours, reaps orphans, and takes all of them along when it ends.
type PIDs struct {
	runtime *Runtime
	pid     int
	holder  *os.File // PID 1's pidfd
	keep    *os.File // PID 1 lives until this is closed
	once    sync.Once
}

// SharePIDs makes a pid namespace for several containers.
func (r *Runtime) SharePIDs() (*PIDs, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	read, keep, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	child, err := r.spawn.clone(stage.Holder, null, null, null, read)
	if err != nil {
		keep.Close()
		return nil, fmt.Errorf("make a shared pid namespace: %w", err)
	}
	p := &PIDs{runtime: r, pid: child.pid, holder: os.NewFile(uintptr(child.pidfd), "pids"), keep: keep}
	r.shared[p] = true
	return p, nil
}

// Close kills what is still inside and gives the namespace back. Containers
// must have ended: their starters wait for them.
func (p *PIDs) Close() error {
	p.end()
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	delete(p.runtime.shared, p)
	return nil
}

func (p *PIDs) end() {
	p.once.Do(func() {
		p.keep.Close()
		process{pid: p.pid, pidfd: int(p.holder.Fd())}.reap()
		p.holder.Close()
	})
}

// mountNamespacePath is where a process's mount namespace is.
func mountNamespacePath(pid int) string { return fmt.Sprintf("/proc/%d/ns/mnt", pid) }

// mountNamespace names a process's mount namespace; empty when it has ended.
// A name is for another namespace as soon as nothing holds the first.
func mountNamespace(pid int) string {
	name, _ := os.Readlink(mountNamespacePath(pid))
	return name
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
		found := false
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
			if mountNamespace(pid) == mounts && !errors.Is(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0), unix.ESRCH) {
				found = true
			}
			unix.Close(fd)
		}
		if !found {
			return
		}
	}
}
