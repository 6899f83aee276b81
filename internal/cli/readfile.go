package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadFile returns the content of a file of at most limit bytes. The error names
// the path and what is there instead.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close()
	return ReadAll(f, path, limit)
}

// ReadAll does what ReadFile does for an open file, or another source, of that name.
func ReadAll(r io.Reader, name string, limit int64) ([]byte, error) {
	// A pipe or a device has no size, so the reading itself is bounded.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s is a directory: want a file", name)
	case err != nil:
		return nil, plain(name, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("%s is larger than %d KiB: is it the right file?", name, limit>>10)
	}
	return data, nil
}

// plain returns the error without the name of a system call.
func plain(path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
