package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A slowed program runs for the first fifth of every period.
const (
	slowPeriod = 250 * time.Millisecond
	slowRun    = slowPeriod / 5
)

const stopGrace = time.Second

// throttle keeps processes of a container from running, without ending them. While it is held, a goroutine looks twice
// in every period: what was forked meanwhile is stopped then.
type throttle struct {
	mu      sync.Mutex
	holds   map[*hold]bool
	stopped map[int]bool // by us, by process number
	// thawed is closed when the whole container is not frozen any more; nil while it is not.
	thawed chan struct{}
	looks  sync.WaitGroup
	looked bool          // a goroutine looks
	ended  chan struct{} // closed by stop
}

type hold struct {
	program string // empty is all
	slow    bool
}

func newThrottle() *throttle { return &throttle{holds: map[*hold]bool{}, ended: make(chan struct{})} }

// Freeze stops every process of the container that runs the program of that name, the last element of its path, or all
// of them when it is empty: SIGSTOP, then SIGCONT by release. A container that is frozen as a whole begins no probe. ok
// is false when there is no such process. SIGKILL ends what is stopped; other signals wait.
func (g *Processes) Freeze(program string) (release func(), ok bool) {
	return g.hold(hold{program: program})
}

// Slow freezes the processes for four fifths of the time.
func (g *Processes) Slow(program string) (release func(), ok bool) {
	return g.hold(hold{program: program, slow: true})
}

func (g *Processes) hold(h hold) (release func(), ok bool) {
	t := g.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	found := false
	g.each(func(pid, _ int) { found = found || runs(pid, h.program) })
	if !found || t.isEnded() {
		return nil, false
	}
	t.holds[&h] = true
	g.applyThrottle(false)
	t.settle()
	if !t.looked {
		t.looked = true
		t.looks.Go(g.runThrottle)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.holds, &h)
			g.applyThrottle(false)
		})
	}, true
}

func (g *Processes) runThrottle() {
	t := g.throttle
	for run := true; ; run = !run {
		pause := slowRun
		if run {
			pause = slowPeriod - slowRun
		}
		select {
		case <-time.After(pause):
		case <-t.ended:
			return
		}
		t.mu.Lock()
		if len(t.holds) == 0 {
			t.looked = false
			t.mu.Unlock()
			return
		}
		g.applyThrottle(run)
		t.mu.Unlock()
	}
}

// applyThrottle stops what is to be stopped, and continues what was. run is whether
// slowed processes run now. The lock is held.
func (g *Processes) applyThrottle(run bool) {
	t := g.throttle
	stopped := map[int]bool{}
	g.each(func(pid, fd int) {
		wanted := false
		for h := range t.holds {
			wanted = wanted || (!h.slow || !run) && runs(pid, h.program)
		}
		switch {
		case wanted:
			stopped[pid] = signalOne(fd, unix.SIGSTOP)
		case t.stopped[pid]:
			signalOne(fd, unix.SIGCONT)
		}
	})
	t.stopped = stopped
	t.updateThawed()
}

// settle waits until the processes that were signalled to stop have stopped: a thread that runs stops when it next
// comes by the kernel. One that waits for a disk may be later. The lock is held.
func (t *throttle) settle() {
	for end := time.Now().Add(stopGrace); time.Now().Before(end); {
		moving := false
		for pid := range t.stopped {
			moving = moving || t.stopped[pid] && moves(pid)
		}
		if !moving {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func moves(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	for _, name := range stats {
		stat, _ := os.ReadFile(name)
		_, state, ok := strings.Cut(string(stat), ") ")
		if ok && state != "" && !strings.ContainsAny(state[:1], "TtZX") {
			return true
		}
	}
	return false
}

// updateThawed makes thawed a channel while something is frozen, and closes it after.
func (t *throttle) updateThawed() {
	frozen := false
	for h := range t.holds {
		frozen = frozen || *h == hold{}
	}
	switch {
	case frozen && t.thawed == nil:
		t.thawed = make(chan struct{})
	case !frozen && t.thawed != nil:
		close(t.thawed)
		t.thawed = nil
	}
}

// End releases the processes when the container has ended: nothing is stopped any more.
func (g *Processes) End() { g.throttle.stop() }

func (t *throttle) stop() {
	t.mu.Lock() // no new look begins while this waits for those under way
	close(t.ended)
	t.mu.Unlock()
	t.looks.Wait()
}

func (t *throttle) isEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// awaitThaw waits while the whole container is frozen. The error is the context's, or ErrEnded.
func (g *Processes) awaitThaw(ctx context.Context) error {
	t := g.throttle
	for {
		t.mu.Lock()
		thawed := t.thawed
		t.mu.Unlock()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-t.ended:
			return ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
