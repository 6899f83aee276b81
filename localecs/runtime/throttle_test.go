package runtime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A container that is frozen as a whole begins no probe until it is let go.
func TestFrozenContainerStartsNoProbe(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	release, ok := c.Freeze("")
	if !ok {
		t.Fatal("not frozen")
	}
	late := ExecSpec{Argv: []string{"/bin/helper", "facts"}, Timeout: 100 * time.Millisecond}
	want := ExecResult{Code: CodeTimedOut, TimedOut: true}
	if got := c.Exec(t.Context(), late); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	results := make(chan ExecResult)
	go func() { results <- c.Exec(t.Context(), Shell("exit 42")) }()
	release()
	if got := <-results; got.Code != 42 {
		t.Errorf("afterwards %+v", got)
	}
	release() // once is enough
	if _, ok := c.Freeze(""); !ok {
		t.Fatal("not frozen again")
	}
	go func() { results <- c.Exec(t.Context(), Shell("exit 42")) }()
	c.Kill()
	if got := <-results; got.Code != CodeNotStarted {
		t.Errorf("probe of a container that was killed while frozen: %+v", got)
	}
	await(t, c)
	if _, ok := c.Slow(""); ok {
		t.Error("a container that has ended is slow")
	}
}

// A container of a shared pid namespace leaves the others alone.
func TestFrozenContainerInSharedPIDs(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	p := sharePIDs(t, r)
	frozen, _ := start(t, r, Spec{pids: p, Args: []string{"/bin/helper", "trap", "3"}})
	other, out := start(t, r, Spec{pids: p, Args: []string{"/bin/helper", "trap", "4"}})
	out.await(t, "ready")
	if _, ok := frozen.Freeze("helper"); !ok {
		t.Fatal("not frozen")
	}
	for _, c := range []*Container{frozen, other} {
		if err := c.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if exit := await(t, other); exit.Code != 4 {
		t.Errorf("the other: %+v", exit)
	}
	select {
	case <-frozen.Done():
		t.Errorf("the frozen one: %+v", frozen.Exit())
	default:
	}
	frozen.KillForMemory()
	if exit := await(t, frozen); exit.Code != 137 || !exit.OOM {
		t.Errorf("%+v, want 137 and out of memory", exit)
	}
}
