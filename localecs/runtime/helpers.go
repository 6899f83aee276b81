package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// watched notices when a helper that containers depend on is killed, by the user or
// by the kernel's out-of-memory killer.
type watched struct {
	ended  chan struct{} // closed when one has ended
	losing sync.Once

	mu      sync.Mutex
	helpers []watchedHelper
	settled bool // the verdict is final
	err     error
}

type watchedHelper struct {
	word string
	pid  int
	conn *net.UnixConn
}

func newWatched() watched { return watched{ended: make(chan struct{})} }

// watch notices the end of a helper, until settle.
func (w *watched) watch(word string, p process, conn *net.UnixConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := watchedHelper{word, p.pid, conn}
	w.helpers = append(w.helpers, h)
	go func() {
		if awaitEnd(p.pidfd) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.settled {
			// The first one's socket is closed, unless a container has it that is just being cloned.
			w.err = cmp.Or(w.firstEnded(), h.endError())
			w.losing.Do(func() { close(w.ended) })
		}
	}()
}

// verdict returns an error that names the helper that has ended. It knows before any container can have
// ended for that: a process that dies closes its files first.
func (w *watched) verdict() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.settled {
		w.err = w.firstEnded()
	}
	return w.err
}

// firstEnded returns the verdict for callers that have w.mu.
func (w *watched) firstEnded() error {
	if w.err != nil {
		return w.err
	}
	for _, h := range w.helpers {
		if ended(h.conn) {
			return h.endError()
		}
	}
	return nil
}

func (h watchedHelper) endError() error {
	return fmt.Errorf("process %d (%s %s), which all containers depend on, exited unexpectedly: it was killed, or the host is out of memory or processes", h.pid, argv0, h.word)
}

// settle makes the verdict final: from here on we end the helpers ourselves.
func (w *watched) settle() {
	_ = w.verdict()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
}

// ended reports whether a helper's end of its socket is closed.
func ended(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var n int
	var received error
	err = raw.Control(func(fd uintptr) {
		n, _, received = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	if err != nil || errors.Is(received, unix.EAGAIN) || errors.Is(received, unix.EINTR) {
		return false
	}
	return n <= 0
}

// Lost returns a channel that is closed when containers cannot run any more, because another process has
// killed a process of ours that they need. Err names it.
func (r *Runtime) Lost() <-chan struct{} { return r.spawn.ended }

// Err returns why containers cannot run any more; nil as long as they can. It is right also before Lost is closed, and
// stays after Close.
func (r *Runtime) Err() error { return r.spawn.verdict() }
