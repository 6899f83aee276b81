package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// CopyTree copies the files of the project that git tracks, or would, into a new directory, with their modes, and
// returns the directory.
func CopyTree(t testing.TB) string {
	t.Helper()
	RequireOnPath(t, "git")
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = Root()
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		err := copyFile(filepath.Join(Root(), name), filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) { // deleted, not yet committed
			t.Fatal(err)
		}
	}
	return dir
}

// copyFile copies a file with its mode, and makes the directories above it.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}
