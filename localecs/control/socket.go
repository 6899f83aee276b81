package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// SocketName is the name of the socket in the directory of a run.
const SocketName = "control"

// Listen creates the socket in a run's directory. Only its owner may connect. A file of that name is
// replaced: the directory belongs to the user alone.
func Listen(dir string) (net.Listener, error) {
	at, path, err := short(dir)
	if err != nil {
		return nil, fmt.Errorf("create control socket: %w", err)
	}
	defer at.Close()
	if err := os.Remove(filepath.Join(dir, SocketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create control socket: %w", err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		// The file gets the mode that the socket has when it is bound.
		return errors.Join(c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }), err)
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("create control socket in %s: %w", dir, cause(err))
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // by a path that ends with at
	return l, nil
}

// short returns a path of a directory's socket within the kernel's limit of 107 bytes. It is valid
// while at is open.
func short(dir string) (at *os.File, path string, err error) {
	at, err = os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, "", err
	}
	return at, fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), SocketName), nil
}

// cause returns the system's error: the path in the wrapping errors is that of short.
func cause(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

// connect connects to the socket of a directory.
func connect(ctx context.Context, dir string) (*net.UnixConn, error) {
	at, path, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, cause(err)
	}
	return c.(*net.UnixConn), nil
}

// NoneError reports that no run is below a directory.
type NoneError struct {
	Dir string
	// Killed are directories of runs that were killed.
	Killed []string
}

// Error implements error, with the remedy.
func (e *NoneError) Error() string {
	text := "nothing runs below " + e.Dir +
		": start localecs run or localecs serve there, or name its directory with -dir"
	for _, dir := range e.Killed {
		text += "; the run in " + dir + " was killed"
	}
	return text
}

// Find returns the directory of the only run in dir or right below it. The error is a *NoneError if
// there is none.
func Find(ctx context.Context, dir string) (string, error) {
	alive, killed, err := look(ctx, dir)
	switch {
	case len(alive) == 1:
		return alive[0], nil
	case len(alive) > 1:
		text := fmt.Sprintf("%d runs are below %s: name one with", len(alive), dir)
		for i, d := range alive {
			if i > 0 {
				text += " or"
			}
			text += " -dir " + d
		}
		return "", errors.New(text)
	case err != nil:
		return "", err
	}
	return "", &NoneError{Dir: dir, Killed: killed}
}

// look finds runs in dir and right below it.
func look(ctx context.Context, dir string) (alive, killed []string, err error) {
	for _, d := range Directories(dir) {
		c, failed := connect(ctx, d)
		switch {
		case failed == nil:
			c.Close()
			alive = append(alive, d)
		case errors.Is(failed, unix.ECONNREFUSED):
			killed = append(killed, d)
		case errors.Is(failed, fs.ErrPermission):
			var st unix.Stat_t
			if unix.Lstat(filepath.Join(d, SocketName), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
				err = fmt.Errorf("the run in %s belongs to another user (uid %d)", d, st.Uid)
			}
		}
	}
	return alive, killed, err
}

// Directories returns dir and the directories right below it.
func Directories(dir string) []string {
	dirs := []string{dir}
	entries, _ := os.ReadDir(dir) // none if it does not exist
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}
