package supervise

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestDistinctSignalsSentTogetherAllArrive(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("listen")...)
	p.Expect("ready")
	five := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM}
	arrived := 0
	for range 100 {
		want := map[string]bool{}
		for _, sig := range five {
			p.Signal(sig)
			want[strconv.Itoa(int(sig))] = true
		}
		for range five {
			line := p.Line()
			if !want[line] {
				t.Fatalf("signal %s, want one of %v", line, want)
			}
			delete(want, line)
			arrived++
		}
	}
	if arrived != 500 {
		t.Errorf("%d signals arrived, want 500", arrived)
	}
}

// A queue that is not emptied must still take a new kind of signal.
func TestFullQueueLosesNoKindOfSignal(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("deaf")...)
	p.Expect("ready")
	for range 5000 {
		p.Signal(syscall.SIGUSR1)
	}
	p.Signal(syscall.SIGTERM)
	p.Stdin.Close()
	p.Expect("2")
}

func TestEarlySignalIsNotLost(t *testing.T) {
	t.Parallel()
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("early", testkit.SelfArgs("sleep")...)...)
	p.Expect("subscribed")
	p.Signal(syscall.SIGTERM)
	p.Stdin.Close() // only now the child starts
	if got := p.Wait(); got != 143 {
		t.Errorf("exit code %d, want 143", got)
	}
}

func TestSignalsOfThisProcessAreNotSubscribedTo(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGCHLD, syscall.SIGURG} {
		if slices.Contains(subscribed(), sig) {
			t.Errorf("%s is subscribed to", sig)
		}
	}
}
