package supervise

import (
	"os"
	"os/signal"
	"slices"
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

// Subscribe queues the signals sent to this program, in order of arrival, until stop is
// called, once. From its return on no signal ends this program, so call it before the work
// that a signal must not interrupt, and stop last. The channel is never closed.
//
// No kind of signal is ever lost. Repeats of one kind may be merged, as the kernel does
// with a signal that is still pending; the queue itself begins to merge only when 1024
// signals wait. Signals about this process are left out: SIGCHLD, SIGURG (the Go
// scheduler's) and SIGPIPE (our own log pipe broke, which must not end us or the child).
func Subscribe() (signals <-chan os.Signal, stop func()) {
	in, out, quit := make(chan os.Signal, notifyBuffer), make(chan os.Signal), make(chan struct{})
	signal.Notify(in, subscribed()...)
	go pump(in, out, quit)
	return out, func() {
		signal.Stop(in)
		close(quit)
	}
}

func pump(in <-chan os.Signal, signals chan<- os.Signal, quit <-chan struct{}) {
	var queue []os.Signal
	for {
		var out chan<- os.Signal
		var next os.Signal
		if len(queue) > 0 {
			out, next = signals, queue[0]
		}
		select {
		case sig := <-in:
			queue = enqueue(queue, sig)
		case out <- next:
			queue = queue[1:]
		case <-quit:
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
