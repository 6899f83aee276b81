package cli

import (
	"errors"
	"os"

	"github.com/meshtask/consul-ecs/internal/volume"
)

// WriteFile replaces a regular file atomically, and writes to any other, such as /dev/stdout, a
// pipe or the target of a link. A rename would put a file in its place.
func WriteFile(path string, text []byte) error {
	st, err := os.Lstat(path)
	if err != nil || st.Mode().IsRegular() {
		return volume.Write(path, text, 0o644, volume.KeepGroup)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
