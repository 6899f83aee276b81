package command

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Of is w's file, and whether it is a terminal.
func Of(w io.Writer) (f *os.File, is bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// usualWidth and usualHeight are the size of a terminal that does not tell it.
const usualWidth, usualHeight = 80, 24

// Size is the terminal's size; one that cannot be asked has the usual one.
// While we are in the background, a shell has the terminal.
func Size(f *os.File) (width, height int, foreground bool) {
	if f == nil {
		return usualWidth, usualHeight, true
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = usualWidth, usualHeight
	}
	ours := unix.Getpgrp()
	if host.Inside() { // the one that the shell has started is our parent
		ours, _ = unix.Getpgid(os.Getppid()) // of a parent that has gone it is nobody's
	}
	// It fails for a terminal that is not ours to control, and then nobody
	// takes it away. 0 is a group that we cannot see.
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return width, height, err != nil || group == 0 || group == ours
}
