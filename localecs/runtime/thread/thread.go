// Package thread runs functions on threads of their own, which they may change
// beyond repair.
//
// Owns: which thread that is. Never does: know what becomes of it.
// Start reading at: Doomed.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Doomed runs fn on a thread that ends afterwards, and does not wait. The process's
// first thread cannot end, and what the kernel shows of the process is shown of it:
// it is kept out of the way while another is found.
func Doomed(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn()
			return // still locked
		}
		done := make(chan struct{})
		Doomed(func() {
			defer close(done)
			fn()
		})
		<-done
		runtime.UnlockOSThread()
	}()
}
