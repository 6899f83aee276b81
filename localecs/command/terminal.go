package command

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/command/tty"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
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

// follower is what shows the run on out, which is what becomes of inv.Stdout.
// Where the log goes to the same terminal, it goes through the follower until
// stop, which also gives a signal back.
func (f *runFlags) follower(inv *cli.Invocation, out io.Writer) (p scenario.Progress, stop func(), err error) {
	terminal, is := tty.Of(inv.Stdout)
	known := !slices.Contains([]string{"", "dumb"}, inv.Getenv("TERM"))
	switch {
	case f.json:
		return progress.Objects(out), func() {}, nil
	case f.mode == plainMode, f.mode == auto && !(is && known):
		return progress.Lines(out), func() {}, nil
	}
	screen := progress.NewLive(progress.Terminal{
		Out:    out,
		Size:   func() (width, height int, ok bool) { return tty.Size(terminal) },
		Colour: inv.Getenv("NO_COLOR") == "",
	})
	stderr := inv.Stderr
	if _, is := tty.Of(stderr); is {
		inv.Stderr = screen.Beside(stderr)
		if err := inv.UseLogger(f.logLevel, f.json); err != nil {
			return nil, nil, err
		}
	}
	resume := onSuspend(screen)
	return screen, func() {
		resume()
		inv.Stderr = stderr
	}, nil
}

// onSuspend clears the screen before Ctrl-Z stops us.
func onSuspend(screen *progress.Live) (stop func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return func() {}
	}
	suspended := make(chan os.Signal, 1)
	signal.Notify(suspended, syscall.SIGTSTP)
	go func() {
		for range suspended {
			screen.Aside(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }) // cannot fail: it is our own
		}
	}()
	return func() {
		signal.Stop(suspended)
		close(suspended)
	}
}
