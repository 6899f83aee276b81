package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Options say which streams the process gets.
type Options struct {
	// Input passes standard input on, through a pipe: what the process does not read
	// stays here, and nobody reads it when we have gone. Own is for a process that may
	// have standard input itself. Without either it is empty.
	Input, Own bool
	// Terminal gives it a terminal of its own, and makes this one pass everything.
	Terminal bool
}

// Streams are those of a process to run.
type Streams struct {
	runtime.Session
	closers []func() // last made first
}

// drainLimit is how long output is awaited after the end: somebody whom the process
// has left behind may hold the terminal.
const drainLimit = 300 * time.Millisecond

// Open makes the streams.
func openStreams(inv *cli.Invocation, o Options) (s *Streams, err error) {
	s = &Streams{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.forward()
	if o.Terminal {
		return s, s.terminal(inv, o.Input)
	}
	if s.Stdin, err = s.input(inv.Stdin, o); err != nil {
		return s, err
	}
	if s.Stdout, err = s.output(inv.Stdout); err != nil {
		return s, err
	}
	s.Stderr, err = s.output(inv.Stderr)
	return s, err
}

// Close gives back what Open has taken. To be called when the process has ended.
func (s *Streams) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

func (s *Streams) later(do func()) { s.closers = append(s.closers, do) }

// forward makes signals the process's.
func (s *Streams) forward() {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH)
	signals, done := make(chan syscall.Signal, 16), make(chan struct{})
	go func() {
		for {
			select {
			case c := <-caught:
				if number, ok := c.(syscall.Signal); ok {
					select {
					case signals <- number:
					default: // nobody takes them, and it has enough
					}
				}
			case <-done:
				return
			}
		}
	}()
	s.Signals = signals
	s.later(func() {
		signal.Stop(caught)
		close(done)
	})
}

// input is a file to read from.
func (s *Streams) input(from io.Reader, o Options) (*os.File, error) {
	if f, ok := from.(*os.File); ok && o.Own {
		return f, nil
	}
	if !o.Input && !o.Own {
		null, err := os.Open(os.DevNull)
		if err == nil {
			s.later(func() { null.Close() })
		}
		return null, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(write, from) // it ends when nobody reads any more
		write.Close()
	}()
	s.later(func() { read.Close() })
	return read, nil
}

// output is a file to write to.
func (s *Streams) output(to io.Writer) (*os.File, error) {
	if f, ok := to.(*os.File); ok {
		return f, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(to, read) })
	s.later(func() {
		write.Close()
		_ = read.SetReadDeadline(time.Now().Add(drainLimit))
		copying.Wait()
		read.Close()
	})
	return write, nil
}

var errNoTerminal = errors.New("-t: standard input and output have to be a terminal")

// terminal makes a terminal for the process, and this one its window.
func (s *Streams) terminal(inv *cli.Invocation, input bool) error {
	in, isFile := inv.Stdin.(*os.File)
	out, isFileToo := inv.Stdout.(*os.File)
	if !isFile || !isFileToo || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return errNoTerminal
	}
	window, theirs, err := open()
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	resize(window, out)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		window.Close()
		theirs.Close()
		return err
	}
	s.Stdin, s.Stdout, s.Stderr, s.Session.Terminal = theirs, theirs, theirs, true
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-resized:
				resize(window, out)
			case <-done:
				return
			}
		}
	}()
	if input {
		go func() { _, _ = io.Copy(window, in) }() // ends with this process
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(out, window) })
	s.later(func() {
		theirs.Close()
		_ = window.SetReadDeadline(time.Now().Add(drainLimit))
		copying.Wait()
		window.Close()
		signal.Stop(resized)
		close(done)
		_ = term.Restore(int(in.Fd()), before)
	})
	return nil
}

// open makes a terminal and its window, whose reading has deadlines.
func open() (window, theirs *os.File, err error) {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "window"), theirs, nil
}

// resize makes a window as large as a terminal, if that has a size.
func resize(window, as *os.File) {
	width, height, err := term.GetSize(int(as.Fd()))
	raw, noConn := window.SyscallConn()
	if err != nil || noConn != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	})
}
