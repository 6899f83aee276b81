package scenario

import (
	"io"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// framesPerSecond is how often the block is drawn when nothing happens.
const framesPerSecond = 8

// Terminal is where Live draws.
type Terminal struct {
	Out io.Writer
	// Size is in cells; ok is false when nothing may be drawn now. It is called before
	// every frame.
	Size   func() (width, height int, ok bool)
	Colour bool
}

// Live writes a line per event and keeps a block below them that shows the state of the
// run. While Follow lasts, one goroutine writes to the terminal, and callers of Event do
// not wait for it.
type Live struct {
	terminal Terminal
	wake     chan struct{} // of capacity 1: lines are pending

	drawing sync.Mutex // held for a frame
	painter painter

	mu        sync.Mutex
	following bool
	lines     []byte // to be written by the next frame
}

// NewLive makes a Live for the terminal.
func NewLive(t Terminal) *Live { return &Live{terminal: t, wake: make(chan struct{}, 1)} }

// Event writes the event above the block. Several goroutines may call it.
func (l *Live) Event(e Event) { _, _ = l.write(l.terminal.Out, e.line()) }

// Beside returns a writer of whole lines for the same terminal: they go above the block
// while there is one, else to w.
func (l *Live) Beside(w io.Writer) io.Writer { return &beside{l, w} }

type beside struct {
	live *Live
	to   io.Writer
}

// Write implements io.Writer.
func (b *beside) Write(lines []byte) (int, error) { return b.live.write(b.to, lines) }

func (l *Live) write(to io.Writer, lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.following {
		return to.Write(lines)
	}
	l.lines = append(l.lines, lines...)
	select {
	case l.wake <- struct{}{}:
	default: // already woken
	}
	return len(lines), nil
}

// Follow draws the state that look returns below the events until end is called, which
// erases it.
func (l *Live) Follow(look func() view.State) (end func()) {
	l.mu.Lock()
	l.following = true
	l.mu.Unlock()
	return background(func(stop <-chan struct{}) {
		tick := time.NewTicker(time.Second / framesPerSecond)
		defer tick.Stop()
		for {
			select {
			case <-l.wake:
			case <-tick.C:
			case <-stop:
				l.last()
				return
			}
			l.draw(look)
		}
	})
}

// draw shows the current state and the pending lines.
func (l *Live) draw(look func() view.State) {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	size, ok := l.size()
	var frame []string
	if ok {
		frame = view.Render(look(), size, l.terminal.Colour, time.Now())
	}
	l.mu.Lock()
	lines := l.lines
	l.lines = nil
	l.mu.Unlock()
	l.paint(lines, frame, size)
}

// last writes the last lines and erases the block. Later lines are written at once.
func (l *Live) last() {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	size, _ := l.size()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paint(l.lines, nil, size)
	l.following, l.lines = false, nil
}

// Aside erases the block while f runs. Afterwards it is drawn at the cursor.
func (l *Live) Aside(f func()) {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	size, _ := l.size()
	l.paint(nil, nil, size)
	f()
}

// size is the terminal's. While another process has the terminal, it moves the cursor,
// and nothing may be erased.
func (l *Live) size() (size view.Size, ok bool) {
	width, height, ok := l.terminal.Size()
	if !ok {
		l.painter = painter{}
	}
	return view.Size{Width: width, Height: height}, ok
}

func (l *Live) paint(lines []byte, frame []string, size view.Size) {
	if text := l.painter.paint(lines, frame, size); len(text) > 0 {
		_, _ = l.terminal.Out.Write(text) // the owner of the writer handles its errors
	}
}
