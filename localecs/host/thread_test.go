package host

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"golang.org/x/sys/unix"
)

// A thread that has started a child must not die, and no other thread
// takes the child's end away.
func TestThrowawayThreadHasNoChildren(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sleep")
	for range 20 {
		runtime.LockOSThread()
		parent, cmd := unix.Gettid(), exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !needed() {
			t.Error("a thread with a child is not needed")
		}
		runtime.UnlockOSThread() // now it is anybody's
		tid := make(chan int)
		OnThrowawayThread(func() {
			for { // as the runtime's spawner does in the end
				if pid, err := unix.Wait4(-1, nil, unix.WNOTHREAD|unix.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
			tid <- unix.Gettid()
		})
		if got := <-tid; got == parent || got == unix.Getpid() {
			t.Errorf("thread %d is doomed; %d has a child, %d is the first", got, parent, unix.Getpid())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); cmd.ProcessState == nil {
			t.Errorf("the child's end is lost: %v", err)
		}
	}
}
