package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFileReplacesFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	for path, target := range map[string]string{link: file, dangling: filepath.Join(dir, "new")} {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ written, read string }{
		{file, file}, {link, file}, {dangling, filepath.Join(dir, "new")},
	} {
		if err := WriteFile(c.written, []byte(c.written)); err != nil {
			t.Errorf("%s: %v", c.written, err)
		}
		if text, err := os.ReadFile(c.read); string(text) != c.written {
			t.Errorf("%s has %q, %v", c.read, text, err)
		}
	}
	for _, path := range []string{link, dangling} {
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is no link any more", path)
		}
	}
	if err := WriteFile(dir, nil); err == nil {
		t.Error("a directory was written")
	}
}
