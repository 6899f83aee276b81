package scenario

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit/vt"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// waiting is a scenario in its second step for as long as now says.
func stillWaiting(started time.Time) view.State {
	return view.State{Scenario: "hello", Begun: started, Step: view.Step{
		Number: 2, Count: 3, Text: "await 2 passing instances of api", SoFar: "1 of 2", Begun: started, Within: 90 * time.Second,
	}}
}

// pass lets the time of a bubble pass, and what happens in it.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// window is a terminal that can be resized and taken away.
type window struct {
	mu            sync.Mutex
	terminal      *vt.Terminal
	width, height int
	away          bool
}

func openWindow(width, height int) *window {
	return &window{terminal: vt.New(width, height), width: width, height: height}
}

func (w *window) live() *Live {
	return NewLive(Terminal{Out: w, Colour: true, Size: func() (int, int, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.width, w.height, !w.away
	}})
}

func (w *window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terminal.Write(p)
}

func (w *window) resize(width, height int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.width, w.height = width, height
	w.terminal.Resize(width, height)
}

func (w *window) take(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

func (w *window) shows(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.terminal.Screen(), "\n"); got != strings.Join(want, "\n") || len(w.terminal.Unknown) > 0 {
		t.Errorf("the screen shows\n%s\nwant\n%s\nnot understood: %v", got, strings.Join(want, "\n"), w.terminal.Unknown)
	}
}

func TestLiveShowsTheBlockAndLeavesOnlyLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(70, 12)
		live := w.live()
		started := time.Now()
		e := Event{Time: started, Kind: view.KindStatus, Task: "web", Container: "web", Status: "RUNNING", Text: "RUNNING"}
		live.Event(e)
		end := live.Follow(func() view.State { return stillWaiting(started) })
		w.shows(t, "   0.00s  web        web                    RUNNING", "")
		pass(3 * time.Second)
		const event, rule = "   0.00s  web        web                    RUNNING", "── hello, 3.0 s ─────────────────────────────────────────────────────"
		w.shows(t, event, rule, "step 2 of 3: await 2 passing instances of api (1 of 2), 3.0 s of 90 s")

		// Within the same frame: events and the log of another writer.
		live.Event(e)
		fmt.Fprintf(live.Beside(io.Discard), "[WARN] something\n")
		w.shows(t, event, event, "[WARN] something", rule, "step 2 of 3: await 2 passing instances of api (1 of 2), 3.0 s of 90 s")

		w.resize(60, 2)
		pass(time.Second)
		w.shows(t, "step 2 of 3: await 2 passing insta… (1 of 2), 4.0 s of 90 s")

		live.Event(e)
		end()
		end() // twice is fine
		live.Event(e)
		fmt.Fprint(w, "report\n")
		if got, want := w.terminal.Text(), strings.Repeat(event+"\n", 2)+"[WARN] something\n"+strings.Repeat(event+"\n", 2)+"report\n"; got != want {
			t.Errorf("in all, got\n%s\nwant\n%s", got, want)
		}

		// The next scenario has a block of its own.
		end = live.Follow(func() view.State { return stillWaiting(started) })
		pass(time.Second)
		w.shows(t, "report", "step 2 of 3: await 2 passing insta… (1 of 2), 5.0 s of 90 s")
		end()
		w.shows(t, "report", "")
	})
}

func TestLiveLosesNoLineAtItsEnd(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	live := NewLive(Terminal{Out: &got, Size: func() (int, int, bool) { return 80, 24, true }})
	for range 100 { // the line may come before the end, or with it
		end := live.Follow(func() view.State { return view.State{} })
		live.Event(Event{Kind: view.KindCleared, Task: "web", Text: "nothing left"})
		end()
	}
	if n := strings.Count(got.String(), "nothing left\n"); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}

func TestLiveDrawsAFewTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		live := NewLive(Terminal{
			Out:  writer(func([]byte) { writes.Add(1) }),
			Size: func() (int, int, bool) { return 80, 24, true },
		})
		started := time.Now()
		end := live.Follow(func() view.State { return stillWaiting(started) })
		pass(5*time.Second + time.Millisecond)
		end()
		if n := writes.Load(); n < 20 || n > 5*framesPerSecond+1 {
			t.Errorf("%d writes in 5 s, want at most %d a second", n, framesPerSecond)
		}
	})
}

// Events come from the simulator, which must go on when the terminal is
// stopped with Ctrl-S.
func TestEventsDoNotWaitForTheTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		var got bytes.Buffer
		live := NewLive(Terminal{
			Out:  writer(func(p []byte) { <-stopped; got.Write(p) }),
			Size: func() (int, int, bool) { return 0, 0, false },
		})
		end := live.Follow(func() view.State { return view.State{} })
		for _, e := range eventRun() {
			live.Event(e)
		}
		close(stopped)
		end()
		if n := strings.Count(got.String(), "\n"); n != 20 {
			t.Errorf("%d lines, want 20", n)
		}
	})
}

func TestLiveDrawsNothingWhileTheTerminalIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(80, 5)
		live := w.live()
		started := time.Now()
		end := live.Follow(func() view.State { return stillWaiting(started) })
		pass(time.Second)
		live.Aside(func() { fmt.Fprint(w, "[1]+  Stopped\n$ bg\n$ ") })
		w.take(true)
		pass(time.Second)
		w.shows(t, "[1]+  Stopped", "$ bg", "$")
		fmt.Fprint(w, "fg\n")
		w.take(false)
		pass(time.Second)
		w.shows(t, "[1]+  Stopped", "$ bg", "$ fg", "── hello, 3.0 s ───────────────────────────────────────────────────────────────",
			"step 2 of 3: await 2 passing instances of api (1 of 2), 3.0 s of 90 s")
		end()
		w.shows(t, "[1]+  Stopped", "$ bg", "$ fg", "")

		// Without a word: what another program has written since is left alone.
		end = live.Follow(func() view.State { return stillWaiting(started) })
		pass(time.Second)
		w.take(true)
		fmt.Fprint(w, "\n\n$ ")
		live.Event(Event{Kind: view.KindCleared, Task: "web", Text: "nothing left"})
		end()
		w.shows(t, "$ fg", "── hello, 4.0 s ───────────────────────────────────────────────────────────────",
			"step 2 of 3: await 2 passing instances of api (1 of 2), 4.0 s of 90 s", "$    0.00s  web        consul                 nothing left", "")
	})
}

// writer is an io.Writer that cannot fail.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
