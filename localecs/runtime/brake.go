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

// brake keeps processes of a container from running, without ending them. While
// it is held, a goroutine looks twice in every period: what was forked
// meanwhile is stopped then.
type brake struct {
	mu      sync.Mutex
	holds   map[*hold]bool
	stopped map[int]bool // by us, by process number
	// thawed is closed when the whole container is not frozen any more; nil while
	// it is not.
	thawed chan struct{}
	looks  sync.WaitGroup
	looked bool          // a goroutine looks
	ended  chan struct{} // closed by stop
}

type hold struct {
	program string // empty is all
	slow    bool
}

func newBrake() *brake { return &brake{holds: map[*hold]bool{}, ended: make(chan struct{})} }

// Freeze stops every process of the container that runs the program of that
// name, the last element of its path, or all of them when it is empty: SIGSTOP,
// then SIGCONT by release. A container that is frozen as a whole begins no
// probe. ok is false when there is no such process. SIGKILL ends what is
// stopped; other signals wait.
func (g *Processes) Freeze(program string) (release func(), ok bool) {
	return g.hold(hold{program: program})
}

// Slow is Freeze for four fifths of the time.
func (g *Processes) Slow(program string) (release func(), ok bool) {
	return g.hold(hold{program: program, slow: true})
}

func (g *Processes) hold(h hold) (release func(), ok bool) {
	b := g.brake
	b.mu.Lock()
	defer b.mu.Unlock()
	found := false
	g.each(func(pid, _ int) { found = found || runs(pid, h.program) })
	if !found || b.isEnded() {
		return nil, false
	}
	b.holds[&h] = true
	g.applyBrake(false)
	b.settle()
	if !b.looked {
		b.looked = true
		b.looks.Go(g.runBrake)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.holds, &h)
			g.applyBrake(false)
		})
	}, true
}

func (g *Processes) runBrake() {
	b := g.brake
	for run := true; ; run = !run {
		pause := slowRun
		if run {
			pause = slowPeriod - slowRun
		}
		select {
		case <-time.After(pause):
		case <-b.ended:
			return
		}
		b.mu.Lock()
		if len(b.holds) == 0 {
			b.looked = false
			b.mu.Unlock()
			return
		}
		g.applyBrake(run)
		b.mu.Unlock()
	}
}

// applyBrake stops what is to be stopped, and continues what was. run is whether
// slowed processes run now. The lock is held.
func (g *Processes) applyBrake(run bool) {
	b := g.brake
	stopped := map[int]bool{}
	g.each(func(pid, fd int) {
		wanted := false
		for h := range b.holds {
			wanted = wanted || (!h.slow || !run) && runs(pid, h.program)
		}
		switch {
		case wanted:
			stopped[pid] = signalOne(fd, unix.SIGSTOP)
		case b.stopped[pid]:
			signalOne(fd, unix.SIGCONT)
		}
	})
	b.stopped = stopped
	b.updateThawed()
}

// settle waits until the processes that were signalled to stop have stopped: a thread that runs stops
// when it next comes by the kernel. One that waits for a disk may be later. The
// lock is held.
func (b *brake) settle() {
	for end := time.Now().Add(stopGrace); time.Now().Before(end); {
		moving := false
		for pid := range b.stopped {
			moving = moving || b.stopped[pid] && moves(pid)
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
func (b *brake) updateThawed() {
	frozen := false
	for h := range b.holds {
		frozen = frozen || *h == hold{}
	}
	switch {
	case frozen && b.thawed == nil:
		b.thawed = make(chan struct{})
	case !frozen && b.thawed != nil:
		close(b.thawed)
		b.thawed = nil
	}
}

// End is called when the container has ended: nothing is braked any more.
func (g *Processes) End() { g.brake.stop() }

func (b *brake) stop() {
	b.mu.Lock() // no new look begins while this waits for those under way
	close(b.ended)
	b.mu.Unlock()
	b.looks.Wait()
}

func (b *brake) isEnded() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// pass waits while the whole container is frozen. The error is the context's, or
// ErrEnded.
func (g *Processes) pass(ctx context.Context) error {
	b := g.brake
	for {
		b.mu.Lock()
		thawed := b.thawed
		b.mu.Unlock()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-b.ended:
			return ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
