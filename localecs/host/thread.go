package host

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThrowawayThread runs fn on a thread that ends afterwards, and does not wait. Threads that
// a caller needs are kept out of the way while another is found.
func OnThrowawayThread(fn func()) {
	go func() {
		runtime.LockOSThread()
		if !needed() {
			fn()
			return // still locked
		}
		done := make(chan struct{})
		OnThrowawayThread(func() {
			defer close(done)
			fn()
		})
		<-done
		runtime.UnlockOSThread()
	}()
}

// needed reports whether the calling thread has to live on: the process's first thread
// cannot end, and what the kernel shows of the process is shown of it. One with
// children must not: they may be bound to die with it, and fn, which may wait for
// whatever the thread has for children, would take their ends from who started them.
func needed() bool {
	return unix.Gettid() == unix.Getpid() ||
		unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WNOTHREAD|unix.WALL, nil) != unix.ECHILD
}
