package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// Open makes dir, or empties it, and keeps other runs out until the
// returned directory is closed or this process ends, however it ends. It
// refuses a directory that another run is using, and one that holds what no run
// has left there.
func openStateDir(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("-dir: %w", err)
	}
	if err := claim(dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// claim locks the directory, then empties it.
func claim(dir *os.File) error {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("-dir: another localecs is using %s: wait until it has ended, or name another directory", dir.Name())
	}
	if err != nil {
		return fmt.Errorf("-dir: lock %s: %w", dir.Name(), err)
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(ours(), e.Name()) && !(e.Name() == control.SocketName && e.Type() == fs.ModeSocket) {
			return fmt.Errorf("-dir: %s holds %q, which no run has made: name another directory", dir.Name(), e.Name())
		}
	}
	for _, e := range entries {
		err := remove(filepath.Join(dir.Name(), e.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("-dir: empty %s: %w: another user's run has left it: remove it as root, or name another directory", dir.Name(), err)
		}
		if err != nil {
			return fmt.Errorf("-dir: empty %s: %w", dir.Name(), err)
		}
	}
	return nil
}

// dyingLimit bounds how long the processes of a killed run may go on. The kernel
// ends them all, and takes milliseconds.
const dyingLimit = 5 * time.Second

// remove removes a tree into which processes of a killed run may still write.
func remove(path string) error {
	for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
		err := os.RemoveAll(path)
		if !errors.Is(err, syscall.ENOTEMPTY) || time.Since(begun) > dyingLimit {
			return err
		}
	}
}

// ours are the names of what runs leave.
func ours() []string {
	return []string{"logs", "volumes", scenario.DataFile, scenario.PageFile, control.EndFile}
}
