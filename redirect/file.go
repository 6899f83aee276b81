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
// no change needs no right to write it: another container of the task has made it. undo
// restores the text that the file had, unless another process has changed it since.
func edit(path string, change func(string) string) (undo func() error, err error) {
	old, err := editIfNeeded(path, change)
	switch {
	case err == nil:
		return func() error {
			_, err := editIfNeeded(path, func(text string) string {
				if text == change(old) {
					return old
				}
				return text
			})
			return err
		}, nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: this container needs user 0, and readonlyRootFilesystem must not be true", err)
	}
	return nil, &retry.PermanentError{Err: err}
}

// editIfNeeded returns the text that the file had.
func editIfNeeded(path string, change func(string) string) (old string, err error) {
	text, err := os.ReadFile(path)
	if err != nil || change(string(text)) == string(text) {
		return string(text), err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() // also unlocks
	// Containers of a task may share the file.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", path, err)
	}
	if text, err = io.ReadAll(f); err != nil {
		return "", err
	}
	old = string(text)
	if err := overwrite(f, change(old)); err != nil {
		_ = overwrite(f, old) // a disk that is full had room for it
		return "", err
	}
	return old, nil
}

// overwrite writes the text with one call, so that a reader does not find the file empty.
func overwrite(f *os.File, text string) error {
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}
