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

// spawner is how containers come to be, and to an end. The anchor is PID 1 of a pid namespace, and every container's
// own pid namespace is inside that one: when the anchor dies, the kernel kills all of them. A container asks for its
// death with the simulator's too, but loses that when its program changes its user, as entry points do; the anchor does
// not.
//
// A namespace inside the anchor's can only be made from there, hence the third
// process, which clones containers as children of this one.
type spawner struct {
	mu   sync.Mutex // one request at a time
	conn *net.UnixConn
	stop chan struct{}
	done chan struct{}

	watched
}

type process struct {
	pid   int
	pidfd *os.File // non-blocking, so that waiting goes through the poller
}

func newProcess(pid, pidfd int) process {
	_ = unix.SetNonblock(pidfd, true) // an error is about a descriptor that is not open
	return process{pid, os.NewFile(uintptr(pidfd), fmt.Sprintf("pidfd-%d", pid))}
}

// newSpawner starts both processes from a thread that lives until close: the signal at the parent's death
// (PR_SET_PDEATHSIG) is sent when the thread that cloned ends, and containers inherit that parent.
func newSpawner() (*spawner, error) {
	s := &spawner{stop: make(chan struct{}), done: make(chan struct{}), watched: newWatched()}
	ready := make(chan error)
	host.OnThrowawayThread(func() {
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
	anchor, anchorConn, err := startHelper(wordAnchor, unix.CLONE_NEWPID)
	if err != nil {
		ready <- err
		return
	}
	defer anchor.kill()
	defer anchorConn.Close()
	if err := unix.Setns(int(anchor.pidfd.Fd()), unix.CLONE_NEWPID); err != nil {
		ready <- fmt.Errorf("enter the anchor's pid namespace: %w", err)
		return
	}
	helper, conn, err := startHelper(wordSpawner, 0)
	if err != nil {
		ready <- err
		return
	}
	s.conn = conn
	defer helper.kill()
	defer conn.Close()
	s.watch(wordAnchor, anchor, anchorConn)
	s.watch(wordSpawner, helper, conn)
	ready <- nil
	<-s.stop
}

// reapChildren waits for every child of the calling thread, which are the two helpers and those that a helper had
// cloned when it was killed, or for which there was no descriptor left: their numbers are unknown, and the anchor does
// not end as long as one of them is a zombie.
func reapChildren() {
	for {
		if _, err := unix.Wait4(-1, nil, unix.WNOTHREAD, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (s *spawner) close() {
	s.settle()
	close(s.stop)
	<-s.done
}

func startHelper(word string, flags uintptr) (process, *net.UnixConn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return process{}, nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return process{}, nil, err
	}
	defer null.Close()
	pidfd := -1
	attr := &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOGC=20"},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Cloneflags: flags, Setsid: true, PidFD: &pidfd},
	}
	if flags != 0 {
		// Only for PID 1: the library compares parents by number, and kills
		// another process of the namespace, which sees none of ours.
		attr.Sys.Pdeathsig = unix.SIGKILL
	}
	pid, err := syscall.ForkExec(host.SelfExe, []string{argv0, word}, attr)
	goruntime.KeepAlive(theirs)
	if err != nil {
		ours.Close()
		return process{}, nil, fmt.Errorf("start the %s process: %w", word, err)
	}
	return newProcess(pid, pidfd), ours, nil
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
	_ = sendSignal(p.pidfd, unix.SIGKILL)
	p.pidfd.Close()
}

// reap kills a child and waits for it. One that does not end in time is left to
// reapChildren: the first process of a namespace ends last in there.
func (p process) reap() {
	_ = sendSignal(p.pidfd, unix.SIGKILL)
	_ = p.pidfd.SetReadDeadline(time.Now().Add(outputGrace))
	if awaitEnd(p.pidfd) == nil {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
	}
}

// clone clones a child, with files as its descriptors.
func (s *spawner) clone(request spawnRequest, files ...*os.File) (process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pidfd, err := request.ask(s.conn, files...)
	goruntime.KeepAlive(files)
	if err != nil {
		return process{}, err
	}
	pid, err := pidOf(pidfd)
	child := newProcess(pid, pidfd)
	if err != nil {
		child.kill()
	}
	return child, err
}

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
