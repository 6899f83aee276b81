package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// mode is the value of -progress.
type mode string

const (
	auto      mode = "auto"
	live      mode = "live"
	plainMode mode = "plain"
)

// String implements flag.Value.
func (m *mode) String() string { return string(*m) }

// Set implements flag.Value.
func (m *mode) Set(s string) error {
	if !slices.Contains([]mode{auto, live, plainMode}, mode(s)) {
		return fmt.Errorf("want %s", strings.Join([]string{string(auto), string(live), string(plainMode)}, ", "))
	}
	*m = mode(s)
	return nil
}

// follower returns the Progress that shows the run on out, which replaces inv.Stdout. On a terminal
// the log goes through it until stop is called; elsewhere events and log do not block.
func (f *runFlags) follower(ctx context.Context, inv *cli.Invocation, out *Writer) (p scenario.Progress, stop func(), err error) {
	terminal, is := Of(inv.Stdout)
	known := !slices.Contains([]string{"", "dumb"}, inv.Getenv("TERM"))
	if f.json || f.mode == plainMode || f.mode == auto && !(is && known) {
		restore, err := Stderr(ctx, inv, f.logLevel, f.json)
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
	screen := scenario.NewLive(scenario.Terminal{
		Out:    out,
		Size:   func() (width, height int, ok bool) { return Size(terminal) },
		Colour: inv.Getenv("NO_COLOR") == "",
	})
	stderr := inv.Stderr
	restore := func() { inv.Stderr = stderr }
	if _, is := Of(stderr); is {
		inv.Stderr = screen.Beside(stderr)
		err = inv.UseLogger(f.logLevel, f.json)
	} else {
		restore, err = Stderr(ctx, inv, f.logLevel, f.json)
	}
	if err != nil {
		return nil, nil, err
	}
	resume := onSuspend(screen)
	return screen, func() {
		resume()
		restore()
	}, nil
}

// onSuspend clears the screen before Ctrl-Z stops this process.
func onSuspend(screen *scenario.Live) (stop func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return func() {}
	}
	suspended := make(chan os.Signal, 1)
	signal.Notify(suspended, syscall.SIGTSTP)
	go func() {
		for range suspended {
			screen.Aside(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }) // cannot fail for this process
		}
	}()
	return func() {
		signal.Stop(suspended)
		close(suspended)
	}
}

// Of returns w as a file, and reports whether it is a terminal.
func Of(w io.Writer) (f *os.File, is bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// usualWidth and usualHeight are used for terminals of unknown size.
const usualWidth, usualHeight = 80, 24

// Size returns the terminal's size, and reports whether this process is in its foreground.
func Size(f *os.File) (width, height int, foreground bool) {
	if f == nil {
		return usualWidth, usualHeight, true
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = usualWidth, usualHeight
	}
	ours := unix.Getpgrp()
	if host.Inside() { // the shell has started the parent
		ours, _ = unix.Getpgid(os.Getppid()) // an error means that the parent has exited
	}
	// It fails for a terminal that does not control this session, which has no background.
	// Group 0 is in another pid namespace.
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return width, height, err != nil || group == 0 || group == ours
}
