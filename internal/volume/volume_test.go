package volume

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckDirAcceptsAWritableDirectoryAndRemovesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := CheckDir(dir); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left %v", entries)
	}
}

func TestCheckDirNamesTheProblem(t *testing.T) {
	t.Parallel()
	us := fmt.Sprintf("running as uid %d, gid %d", os.Geteuid(), os.Getegid())
	missing := filepath.Join(t.TempDir(), "missing")
	wantError(t, CheckDir(missing), missing+" does not exist", us, "mount the task's shared volume there")

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	wantError(t, CheckDir(file), file+" is not a directory", "mode -rw-r-----")
	wantError(t, CheckDir(filepath.Join(file, "below")), "not a directory", us)
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func TestCopySelf(t *testing.T) {
	t.Parallel()
	dst := filepath.Join(t.TempDir(), "copy")
	for range 2 { // the second replaces the first
		if err := CopySelf(dst); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dst); err != nil || !bytes.Equal(got, want) {
		t.Errorf("copy differs from the executable (error %v)", err)
	}
	if info, err := os.Stat(dst); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, error %v, want 0755", info.Mode(), err)
	}
	wantError(t, CopySelf(filepath.Join(dst, "below")), "not a directory")
}
