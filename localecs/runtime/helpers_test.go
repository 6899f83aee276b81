package runtime

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// closeInTime fails the test when Close hangs.
func closeInTime(t *testing.T, r *Runtime) {
	t.Helper()
	done := make(chan error)
	go func() { done <- r.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("Close hangs")
	}
}

func TestKilledHelperIsNoticedAndNamed(t *testing.T) {
	t.Parallel()
	for _, word := range []string{wordAnchor, wordSpawner} {
		newRuntime(t) // skips where there is none
		r, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
		if err := r.Err(); err != nil {
			t.Errorf("nothing has happened: %v", err)
		}
		var pid int
		for _, h := range r.spawn.helpers {
			if h.word == word {
				pid = h.pid
			}
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if word == wordAnchor {
			// When the container's end is visible, the reason is known.
			if exit := await(t, c); exit.Code != 137 || r.Err() == nil {
				t.Errorf("%+v, error %v", exit, r.Err())
			}
		}
		select {
		case <-r.Lost():
		case <-time.After(testkit.Patience):
			t.Fatal("the end was not noticed")
		}
		if _, err := r.Start(Spec{Name: "late", Image: toolbox(t), Args: sh("true")}); err == nil {
			t.Error("a container was started out of nothing")
		}
		closeInTime(t, r)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), argv0+" "+word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// A container that was being cloned has the socket of a helper that was killed.
func TestKilledHelperIsNamedThoughItsSocketIsOpen(t *testing.T) {
	t.Parallel()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	pidfd := -1
	helper := exec.Command("/bin/sleep", "1000")
	helper.SysProcAttr = &syscall.SysProcAttr{PidFD: &pidfd, Pdeathsig: syscall.SIGKILL}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	p := newProcess(helper.Process.Pid, pidfd)
	defer p.pidfd.Close()
	w := newWatched()
	w.watch(wordSpawner, p, ours)
	p.reap()
	select {
	case <-w.ended:
	case <-time.After(testkit.Patience):
		t.Fatal("the end of the helper was not noticed")
	}
	if err := w.verdict(); err == nil || !strings.Contains(err.Error(), argv0+" "+wordSpawner) {
		t.Errorf("got %v, want the helper that ended", err)
	}
}

func TestOwnEndIsNoLoss(t *testing.T) {
	t.Parallel()
	newRuntime(t)
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeInTime(t, r)
	select {
	case <-r.Lost():
		t.Error("lost by closing")
	default:
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

// A process was cloned, and nothing received its descriptor: the spawner was killed
// just then, or there were no descriptors left.
func TestUnansweredCloneBlocksNoOtherStart(t *testing.T) {
	t.Parallel()
	newRuntime(t)
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := r.sharePIDs()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for request, files := range map[spawnRequest][]int{
		ownPIDs:    {int(null.Fd()), int(null.Fd()), int(null.Fd())},
		sharedPIDs: {int(null.Fd()), int(null.Fd()), int(null.Fd()), int(shared.pidfd.Fd())},
	} {
		if _, _, err := r.spawn.conn.WriteMsgUnix([]byte{byte(request)}, unix.UnixRights(files...), nil); err != nil {
			t.Fatal(err)
		}
		raw, err := r.spawn.conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Read(readable); err != nil {
			t.Fatal(err)
		}
		// The answer with its descriptor is thrown away.
		if _, _, _, _, err := r.spawn.conn.ReadMsgUnix(make([]byte, 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.Close(); err != nil {
		t.Error(err)
	}
	closeInTime(t, r)
}
