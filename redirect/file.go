package redirect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// edit changes a file that cannot be replaced, because it is a mount. A file that needs
// no change needs no right to write it: another container of the task has made it.
func edit(path string, change func(string) string) error {
	err := editIfNeeded(path, change)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: this container needs user 0, and readonlyRootFilesystem must not be true", err)
	}
	return &retry.PermanentError{Err: err}
}

func editIfNeeded(path string, change func(string) string) error {
	text, err := os.ReadFile(path)
	if err != nil || change(string(text)) == string(text) {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // also unlocks
	// Containers of a task may share the file.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if err := overwrite(f, change(string(old))); err != nil {
		_ = overwrite(f, string(old)) // a disk that is full had room for it
		return err
	}
	return nil
}

// overwrite writes the text with one call, so that a reader does not find the file empty.
func overwrite(f *os.File, text string) error {
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}
