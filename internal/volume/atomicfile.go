package volume

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// KeepGroup leaves the file's group as the kernel chose it.
const KeepGroup = -1

// keepOwner leaves the file to us.
const keepOwner = -1

// Write replaces path by data. mode is exact: the umask does not apply. gid is
// the file's group or KeepGroup.
func Write(path string, data []byte, mode os.FileMode, gid int) error {
	return writeFrom(path, bytes.NewReader(data), owners{mode, keepOwner, gid}, nil)
}

// writeFrom replaces path by what r has. Users that may read the file like, unless it is nil,
// may read the new file, too.
func writeFrom(path string, r io.Reader, o owners, like *os.File) (err error) {
	defer func() {
		switch {
		case Full(err):
			err = fmt.Errorf("write %s: %w: %s", path, err, fullRemedy)
		case err != nil:
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	// Owners first: a chown may clear mode bits.
	if o.uid != keepOwner || o.gid != KeepGroup {
		if err := f.Chown(o.uid, o.gid); err != nil {
			return err
		}
	}
	// A copied access control list sets the mode, too: its mask takes the place of the
	// group's bits, which must not be the group's own right even for a moment.
	listed := false
	if like != nil {
		if listed, err = copyReaders(like, f); err != nil {
			return err
		}
	}
	if !listed {
		if err := f.Chmod(o.mode); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
