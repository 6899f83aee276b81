package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 2048)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path  string
		limit int64
		want  string
	}{
		{file, 2048, ""},
		{file, 2047, file + " is larger than 1 KiB: is it the right file?"},
		{"/dev/zero", 1 << 20, "/dev/zero is larger than 1024 KiB: is it the right file?"},
		{dir, 9, dir + " is a directory: want a file"},
		{dir + "/none", 9, dir + "/none: no such file or directory"},
		{file + "/x", 9, file + "/x: not a directory"},
	} {
		data, err := ReadFile(tt.path, tt.limit)
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(data) != 2048 {
			t.Errorf("%s, %d: got %d bytes, want 2048", tt.path, tt.limit, len(data))
		}
		if got != tt.want {
			t.Errorf("%s, %d: got %q, want %q", tt.path, tt.limit, got, tt.want)
		}
	}
}
