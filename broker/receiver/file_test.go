package receiver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// A user who may write the directory plants a file that all may read, or a link to one.
func TestPlantedFileGivesTheTokenNoReaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, other := files{path: filepath.Join(dir, "token")}, filepath.Join(dir, "other")
	first, second := secret.New("first"), secret.New("second")
	for name, plant := range map[string]func() error{
		"file": func() error { return os.WriteFile(f.path, []byte("theirs"), 0o666) },
		"link": func() error {
			return errors.Join(os.WriteFile(other, []byte("first"), 0o666), os.Symlink(other, f.path))
		},
	} {
		if _, err := f.write(token{secret: first}, secret.Value{}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(f.path), plant()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.write(token{secret: second}, first); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != fileMode {
			t.Errorf("%s: the token file has mode %s, want 0600", name, info.Mode())
		}
		if err := f.remove(); err != nil {
			t.Fatal(err)
		}
	}
}

// A planted link is no token of an earlier run, and no reason to fail.
func TestLinkInPlaceOfTheTokenFileIsRemoved(t *testing.T) {
	t.Parallel()
	f := files{path: filepath.Join(t.TempDir(), "token")}
	if err := os.Symlink("/etc/hostname", f.path); err != nil {
		t.Fatal(err)
	}
	if held, err := f.read("arn"); err != nil || !held.secret.Empty() {
		t.Errorf("token %+v, %v", held, err)
	}
	if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is there: %v", err)
	}
}
