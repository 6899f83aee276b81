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

// edit changes a file that cannot be replaced, because it is a mount. Several containers
// may edit the same file at once, so it is locked; one call writes the new text, so a
// reader does not find the file empty.
func edit(path string, change func(string) string) error {
	err := editLocked(path, change)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("%w: this container needs user 0, and readonlyRootFilesystem must not be true", err)
	}
	return &retry.PermanentError{Err: err}
}

func editLocked(path string, change func(string) string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // also unlocks
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	text := change(string(old))
	if text == string(old) {
		return nil
	}
	if err := overwrite(f, text); err != nil {
		_ = overwrite(f, string(old)) // a disk that is full had room for it
		return err
	}
	return nil
}

func overwrite(f *os.File, text string) error {
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}
