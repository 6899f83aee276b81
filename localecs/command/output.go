package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// capacity is how many bytes may wait for the reader before lines are dropped.
	capacity = 1 << 20
	// patience is how long output is waited for once the run has ended.
	patience = 2 * time.Second
)

// Watch returns a context that is canceled when out cannot be written, and the writer
// to use in place of out.
func Watch(ctx context.Context, out io.Writer) (context.Context, *Writer) {
	// Otherwise the first write after "| head" would kill this process like kill -9.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, New(ctx, out, func(err error) { cancel(fmt.Errorf("standard output cannot be written: %w", err)) })
}

// Writer writes in a goroutine of its own. It is safe for concurrent use.
type Writer struct {
	to    io.Writer
	ended <-chan struct{}
	fail  func(error)

	mu sync.Mutex
	// next is what the goroutine writes next; nil when nothing waits.
	next    *batch
	writing bool // the goroutine runs
	lost    bool // the reader has used up patience
	err     error
}

// batch is what is written at once.
type batch struct {
	text []byte
	// dropped is how many lines came after text and were dropped; note makes a line
	// of it.
	dropped int
	note    func(dropped int) []byte
	written chan struct{} // closed afterwards
}

// close puts the note about dropped lines after the text.
func (b *batch) close() {
	if b.dropped > 0 {
		b.text = append(b.text, b.note(b.dropped)...)
		b.dropped = 0
	}
}

// New returns a writer to out. It calls fail with each error of out, and waits for the
// reader only a short time once ctx has ended.
func New(ctx context.Context, out io.Writer, fail func(error)) *Writer {
	return &Writer{to: out, ended: ctx.Done(), fail: fail}
}

// Lossy returns a writer to the same output that never blocks. Lines for which there
// is no room are dropped, and note makes the line that takes their place; without a
// line nothing does.
func (w *Writer) Lossy(note func(dropped int) []byte) io.Writer { return lossy{w, note} }

type lossy struct {
	*Writer
	note func(dropped int) []byte
}

// Write implements io.Writer. It returns no error.
func (l lossy) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batch()
	if b.dropped > 0 || len(b.text)+len(line) > capacity {
		b.dropped++
		b.note = l.note
		return len(line), nil
	}
	b.text = append(b.text, line...)
	return len(line), nil
}

var errReader = errors.New("the reader has stopped reading")

// Write implements io.Writer. It returns when the text has been written.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	b := w.batch()
	b.close()
	b.text = append(b.text, text...)
	if w.lost {
		w.mu.Unlock()
		return 0, errReader
	}
	w.mu.Unlock()
	err := w.await(b)
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush waits until everything has been written.
func (w *Writer) Flush() error {
	_, err := w.Write(nil)
	return err
}

func (w *Writer) await(b *batch) error {
	select {
	case <-b.written:
	case <-w.ended:
		select {
		case <-b.written:
		case <-time.After(patience):
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost = true
			return errReader
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// batch returns the one that is written next, and has it written.
func (w *Writer) batch() *batch {
	if w.next == nil {
		w.next = &batch{written: make(chan struct{})}
	}
	if !w.writing {
		w.writing = true
		go w.write()
	}
	return w.next
}

// write writes batches until there is none.
func (w *Writer) write() {
	for {
		w.mu.Lock()
		b := w.next
		w.next, w.writing = nil, b != nil
		w.mu.Unlock()
		if b == nil {
			return
		}
		b.close()
		if len(b.text) > 0 {
			if _, err := w.to.Write(b.text); err != nil {
				w.mu.Lock()
				w.err = err
				w.mu.Unlock()
				w.fail(err)
			}
		}
		close(b.written)
	}
}
