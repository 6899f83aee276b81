package runtime

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// spawner is how containers come to be, and to an end. The anchor is PID 1 of
// a pid namespace, and every container's own pid namespace is inside that one:
// when the anchor dies, the kernel kills all of them. A container asks for its
// death with the simulator's too, but loses that when its program changes its
// user, as entry points do; the anchor does not.
//
// A namespace inside the anchor's can only be made from there, hence the third
// process, which clones containers as children of this one.
type spawner struct {
	mu   sync.Mutex // one request at a time
	conn *net.UnixConn
	// anchor is the anchor, alive until close.
	anchor process
	stop   chan struct{}
	done   chan struct{}

	watched
}

// process is a child of this process.
type process struct {
	pid   int
	pidfd int
}

// newSpawner starts both processes from a thread that lives until close: the
// wish to die with the parent is about the thread that cloned, and containers
// inherit that parent.
func newSpawner() (*spawner, error) {
	s := &spawner{stop: make(chan struct{}), done: make(chan struct{}), watched: newWatched()}
	ready := make(chan error)
	host.Doomed(func() {
		defer close(s.done)
		s.run(ready)
	})
	if err := <-ready; err != nil {
		<-s.done
		return nil, err
	}
	return s, nil
}

func (s *spawner) run(ready chan<- error) {
	defer reapChildren()
	anchor, anchorConn, err := startHelper(WordAnchor, unix.CLONE_NEWPID)
	if err != nil {
		ready <- err
		return
	}
	s.anchor = anchor
	defer anchor.kill()
	defer anchorConn.Close()
	if err := unix.Setns(anchor.pidfd, unix.CLONE_NEWPID); err != nil {
		ready <- fmt.Errorf("enter the anchor's pid namespace: %w", err)
		return
	}
	helper, conn, err := startHelper(WordSpawner, 0)
	if err != nil {
		ready <- err
		return
	}
	s.conn = conn
	defer helper.kill()
	defer conn.Close()
	unwatch := s.watch(WordAnchor, anchor, anchorConn)
	defer s.watch(WordSpawner, helper, conn)()
	defer unwatch()
	ready <- nil
	<-s.stop
}

// reapChildren waits for every child of the calling thread, which are the two
// helpers and those that a helper had cloned when it was killed, or for which
// there was no descriptor left: their numbers are unknown, and the anchor does
// not end as long as one of them is a zombie.
func reapChildren() {
	for {
		if _, err := unix.Wait4(-1, nil, unix.WNOTHREAD, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// close ends both processes and the thread.
func (s *spawner) close() {
	s.settle()
	close(s.stop)
	<-s.done
}

// startHelper starts this binary as a helper with a socket to it.
func startHelper(word string, flags uintptr) (process, *net.UnixConn, error) {
	var p process
	ours, theirs, err := socketPair()
	if err != nil {
		return p, nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return p, nil, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOGC=20"},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Cloneflags: flags, Setsid: true, PidFD: &p.pidfd},
	}
	if flags != 0 {
		// Only for PID 1: the library compares parents by number, and kills
		// another process of the namespace, which sees none of ours.
		attr.Sys.Pdeathsig = unix.SIGKILL
	}
	p.pid, err = syscall.ForkExec(SelfExe, []string{Argv0, word}, attr)
	goruntime.KeepAlive(theirs)
	if err != nil {
		ours.Close()
		return p, nil, fmt.Errorf("start the %s process: %w", word, err)
	}
	return p, ours, nil
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "helper")
	mine := os.NewFile(uintptr(fds[0]), "simulator")
	defer mine.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// kill kills a child that another process reaps, and closes its pidfd.
func (p process) kill() {
	_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	unix.Close(p.pidfd)
}

// end kills and reaps a child, and closes its pidfd.
func (p process) end() {
	p.reap()
	unix.Close(p.pidfd)
}

// reap kills a child and waits for it. One that does not end in time is left to
// reapChildren: the first process of a namespace ends last in there.
func (p process) reap() {
	_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	for end := time.Now().Add(outputGrace); ; {
		left := time.Until(end)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, max(0, int(left.Milliseconds())))
		switch {
		case n > 0:
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			return
		case left <= 0 || err != nil && !errors.Is(err, unix.EINTR):
			return
		}
	}
}

// clone has a child cloned, with files as its descriptors.
func (s *spawner) clone(request Request, files ...*os.File) (process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pidfd, err := request.Ask(s.conn, files...)
	goruntime.KeepAlive(files)
	if err != nil {
		return process{}, err
	}
	pid, err := pidOf(pidfd)
	if err != nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		unix.Close(pidfd)
		return process{}, err
	}
	return process{pid: pid, pidfd: pidfd}, nil
}

// pidOf returns the number that a process has here. The spawner sees another.
func pidOf(pidfd int) (int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "Pid:"); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, fmt.Errorf("no process number in %s: %w", f.Name(), lines.Err())
}
