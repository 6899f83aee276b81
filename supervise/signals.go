package supervise

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

const (
	// notifyBuffer takes what arrives while the pump is not scheduled. The
	// pump does nothing but empty it, and the runtime holds at most one of
	// each of the 64 signals, so several rounds of everything fit.
	notifyBuffer = 512
	// mergeFrom is the length from which the queue merges repeats.
	mergeFrom = 1024
)

// Signals is a queue of the signals sent to this program, in order of arrival.
// No kind of signal is ever lost. Repeats of one kind may be merged, as the
// kernel does with a signal that is still pending; the queue itself begins to
// merge only when 1024 signals wait. Signals that speak about this process and
// not to it are left out: SIGCHLD, SIGURG (the Go scheduler's) and SIGPIPE
// (our own log pipe broke, which must not end us or the child).
type Signals struct {
	in, out chan os.Signal
	quit    chan struct{}
	stop    sync.Once
}

// Subscribe starts to queue. From its return on no signal ends this program,
// so call it before the work that a signal must not interrupt, and Stop last.
func Subscribe() *Signals {
	s := &Signals{
		in:   make(chan os.Signal, notifyBuffer),
		out:  make(chan os.Signal),
		quit: make(chan struct{}),
	}
	signal.Notify(s.in, subscribed()...)
	go s.pump()
	return s
}

// C delivers the signals. It is never closed.
func (s *Signals) C() <-chan os.Signal { return s.out }

// Stop ends the subscription; signals act on this program again.
func (s *Signals) Stop() {
	s.stop.Do(func() {
		signal.Stop(s.in)
		close(s.quit)
	})
}

func (s *Signals) pump() {
	var queue []os.Signal
	for {
		var out chan<- os.Signal
		var next os.Signal
		if len(queue) > 0 {
			out, next = s.out, queue[0]
		}
		select {
		case sig := <-s.in:
			queue = enqueue(queue, sig)
		case out <- next:
			queue = queue[1:]
		case <-s.quit:
			return
		}
	}
}

// enqueue adds sig, unless it is not for the child or only repeats, in a queue
// that is not emptied, what is waiting already.
func enqueue(queue []os.Signal, sig os.Signal) []os.Signal {
	if sig == syscall.SIGPIPE || (len(queue) >= mergeFrom && slices.Contains(queue, sig)) {
		return queue
	}
	return append(queue, sig)
}
