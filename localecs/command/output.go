package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

const (
	// capacity is the number of bytes that are buffered before lines are dropped.
	capacity = 1 << 20
	// patience bounds the wait for the reader after the end of the run.
	patience = 2 * time.Second
)

// watch returns a context that is canceled when out cannot be written, and the writer to use in its
// place.
func watch(ctx context.Context, out io.Writer) (context.Context, *asyncWriter) {
	// Otherwise the first write after "| head" would kill this process like kill -9.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, newAsyncWriter(ctx, out, func(err error) { cancel(fmt.Errorf("standard output cannot be written: %w", err)) })
}

// asyncWriter writes in another goroutine. It is safe for concurrent use.
type asyncWriter struct {
	to    io.Writer
	ended <-chan struct{}
	fail  func(error)

	mu sync.Mutex
	// next is written next; nil if nothing waits.
	next    *batch
	writing bool // the goroutine is running
	lost    bool // the reader did not read within patience
	err     error
}

// batch is the text of one write.
type batch struct {
	text []byte
	// dropped is the number of lines dropped after text; note makes a line of it.
	dropped int
	note    func(dropped int) []byte
	written chan struct{} // closed afterwards
}

// close appends the note about dropped lines.
func (b *batch) close() {
	if b.dropped > 0 {
		b.text = append(b.text, b.note(b.dropped)...)
		b.dropped = 0
	}
}

// newAsyncWriter returns a writer to out. It calls fail with each error of out. After the end of ctx it waits
// for the reader only for patience.
func newAsyncWriter(ctx context.Context, out io.Writer, fail func(error)) *asyncWriter {
	return &asyncWriter{to: out, ended: ctx.Done(), fail: fail}
}

// Lossy returns a writer to the same output that never blocks. It drops lines beyond capacity, and
// writes the line that note returns, if any, in their place.
func (w *asyncWriter) Lossy(note func(dropped int) []byte) io.Writer { return lossy{w, note} }

type lossy struct {
	*asyncWriter
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
func (w *asyncWriter) Write(text []byte) (int, error) {
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
func (w *asyncWriter) Flush() error {
	_, err := w.Write(nil)
	return err
}

func (w *asyncWriter) await(b *batch) error {
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

// batch returns the batch to append to, and starts its write.
func (w *asyncWriter) batch() *batch {
	if w.next == nil {
		w.next = &batch{written: make(chan struct{})}
	}
	if !w.writing {
		w.writing = true
		go w.write()
	}
	return w.next
}

// write writes batches until none is left.
func (w *asyncWriter) write() {
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

// useLogger makes inv log to its standard error, in text as its commands print their own warnings.
func useLogger(inv *cli.Invocation, level string, json bool) error {
	stderr := inv.Stderr
	if !json {
		inv.Stderr = &plainLog{w: stderr}
	}
	err := inv.UseLogger(level, json)
	inv.Stderr = stderr
	return err
}

// plainLog writes the lines of a text log, warnings and errors without time and level. Warnings about what this host
// lacks, which it lacks for all scenarios, come once.
type plainLog struct {
	w    io.Writer
	once sync.Map
}

// Write gets a line of the log.
func (p *plainLog) Write(line []byte) (int, error) {
	text := line
	for level, word := range map[string]string{" [WARN]  ": "warning", " [ERROR] ": "error"} {
		if _, logged, ok := bytes.Cut(line, []byte(level)); ok {
			name, message, _ := bytes.Cut(logged, []byte(": "))
			text = fmt.Appendf(nil, "%s: %s: %s", bytes.ReplaceAll(name, []byte("."), []byte(" ")), word, message)
		}
	}
	if _, reason, _ := bytes.Cut(text, []byte(logkey.Reason+"=")); bytes.Contains(text, []byte(runtime.HostLacks)) {
		if _, known := p.once.LoadOrStore(string(reason), true); known {
			return len(line), nil
		}
	}
	_, err := p.w.Write(text)
	return len(line), err
}

// lossyStderr makes inv write and log to standard error without blocking, until restore is called, which
// waits until everything has been written. If the reader has stopped reading, restore changes
// nothing: further output may be lost, and does not delay the end of the process.
func lossyStderr(ctx context.Context, inv *cli.Invocation, level string, json bool) (restore func(), err error) {
	stderr, log := inv.Stderr, inv.Log
	w := newAsyncWriter(ctx, stderr, func(error) {}) // it cannot be reported
	inv.Stderr = w.Lossy(func(dropped int) []byte {
		const text = "lines were dropped, since standard error was not read in time"
		if json {
			return fmt.Appendf(nil, `{"@level":"warn","@message":"%s","dropped":%d}`+"\n", text, dropped)
		}
		return fmt.Appendf(nil, "localecs: %d %s\n", dropped, text)
	})
	restore = func() {
		if w.Flush() == nil {
			inv.Stderr, inv.Log = stderr, log
		}
	}
	if err := useLogger(inv, level, json); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}

// follower returns what shows the run on out, which replaces inv.Stdout. Events and log
// do not block until stop is called.
func (f *runFlags) follower(ctx context.Context, inv *cli.Invocation, out *asyncWriter) (p func(scenario.Event), stop func(), err error) {
	restore, err := lossyStderr(ctx, inv, f.logLevel, f.json)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = out.Flush() // its errors end ctx
		restore()
	}
	if f.json {
		return scenario.Objects(out.Lossy(scenario.DroppedObject), out), stop, nil
	}
	return scenario.Lines(out.Lossy(scenario.DroppedLine), out), stop, nil
}

// appendLines opens a file or pipe for appending lines without blocking. Errors and dropped lines are
// logged.
func appendLines(ctx context.Context, path string, log hclog.Logger) (lines io.Writer, closeFile func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	w := newAsyncWriter(ctx, file, func(err error) { log.Warn("lines were not written", logkey.Path, path, logkey.Error, err) })
	lines = w.Lossy(func(dropped int) []byte {
		log.Warn("lines were dropped, since the file was not read in time", logkey.Path, path, logkey.Dropped, dropped)
		return nil
	})
	return lines, func() {
		_ = w.Flush() // has been logged
		file.Close()
	}, nil
}
