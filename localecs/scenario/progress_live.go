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
	// Size is in cells. It is asked before every frame, so that a new one is
	// noticed at the next; false when nothing may be drawn now.
	Size   func() (width, height int, ok bool)
	Colour bool
}

// Live writes a line an event and keeps a block below them that shows what is
// going on. While Follow lasts, one goroutine writes to the terminal and nobody
// waits for it.
type Live struct {
	terminal Terminal
	wake     chan struct{} // has one place: there are lines to be written

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

// Beside is for who else writes to the same terminal, whole lines: they go above
// the block while there is one, else to w.
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
	default: // it is awake
	}
	return len(lines), nil
}

// Follow draws what look tells below the events, until end is called: then
// nothing of it is left.
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

// draw shows the state as it is now, and the lines that have come.
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

// last writes the last lines and takes the block away. What comes from now on
// is written at once.
func (l *Live) last() {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	size, _ := l.size()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paint(l.lines, nil, size)
	l.following, l.lines = false, nil
}

// Aside takes the block away while f runs. Afterwards it is drawn where the
// cursor is then.
func (l *Live) Aside(f func()) {
	l.drawing.Lock()
	defer l.drawing.Unlock()
	size, _ := l.size()
	l.paint(nil, nil, size)
	f()
}

// size is the terminal's. While that is somebody else's, so is the cursor, and
// nothing may be erased.
func (l *Live) size() (size view.Size, ok bool) {
	width, height, ok := l.terminal.Size()
	if !ok {
		l.painter = painter{}
	}
	return view.Size{Width: width, Height: height}, ok
}

func (l *Live) paint(lines []byte, frame []string, size view.Size) {
	if text := l.painter.paint(lines, frame, size); len(text) > 0 {
		_, _ = l.terminal.Out.Write(text) // the writer knows, and its owner decides
	}
}
