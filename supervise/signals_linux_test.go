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

func TestEnqueue(t *testing.T) {
	t.Parallel()
	full := slices.Repeat([]os.Signal{syscall.SIGUSR1}, mergeFrom)
	for _, c := range []struct {
		name  string
		queue []os.Signal
		sig   os.Signal
		want  int
	}{
		{"first", nil, syscall.SIGTERM, 1},
		{"repeat in a short queue stays", []os.Signal{syscall.SIGTERM}, syscall.SIGTERM, 2},
		{"repeat in a long queue merges", full, syscall.SIGUSR1, mergeFrom},
		{"new kind in a long queue stays", full, syscall.SIGTERM, mergeFrom + 1},
		{"SIGPIPE", nil, syscall.SIGPIPE, 0},
	} {
		if got := len(enqueue(slices.Clone(c.queue), c.sig)); got != c.want {
			t.Errorf("%s: length %d, want %d", c.name, got, c.want)
		}
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
