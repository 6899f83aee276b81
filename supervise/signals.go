package supervise

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// notifyBuffer takes the signals that arrive while pump is not scheduled.
const notifyBuffer = 512

// Subscribe queues the signals sent to this program, in order of arrival, until stop is
// called, once. From its return on no signal ends this program, so call it before the work
// that a signal must not interrupt, and stop last. The channel is never closed.
//
// No kind of signal is lost, however many arrive: repeats of one that is still queued are
// merged, as the kernel does. Signals about this process are left out: SIGCHLD, SIGURG (the
// Go scheduler's) and SIGPIPE (our own log pipe broke, which must not end us or the child).
func Subscribe() (signals <-chan os.Signal, stop func()) {
	in, out, quit := make(chan os.Signal, notifyBuffer), make(chan os.Signal), make(chan struct{})
	signal.Notify(in, subscribed()...)
	go pump(in, out, quit)
	return out, func() {
		signal.Stop(in)
		close(quit)
	}
}

// pump empties in at once: signal.Notify drops what does not fit into it, so that
// thousands of one signal would hide a TERM.
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
			if sig != syscall.SIGPIPE && !slices.Contains(queue, sig) {
				queue = append(queue, sig)
			}
		case out <- next:
			queue = queue[1:]
		case <-quit:
			return
		}
	}
}
