package volume

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestWriteSetsExactModeAndReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []struct {
		data string
		mode os.FileMode
	}{{"first", 0o444}, {"second", 0o640}, {"third", 0o755}} {
		if err := Write(path, []byte(want.data), want.mode, KeepGroup); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		st, _ := os.Stat(path)
		if string(got) != want.data || st.Mode().Perm() != want.mode {
			t.Errorf("got %q %s, want %q %s", got, st.Mode().Perm(), want.data, want.mode)
		}
	}
}

func TestWriteSetsTheGroup(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root may give a file to another group")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, nil, 0o640, 5996); err != nil {
		t.Fatal(err)
	}
	st, _ := os.Stat(path)
	if gid := st.Sys().(*syscall.Stat_t).Gid; gid != 5996 {
		t.Errorf("group %d, want 5996", gid)
	}
}

func TestWriteFailsCleanlyWithoutTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "missing", "file")
	err := Write(path, []byte("x"), 0o644, KeepGroup)
	if err == nil || !strings.Contains(err.Error(), "write "+path) {
		t.Errorf("got %v, want an error naming the file", err)
	}
}

func TestWriteLeavesNothingBehindOnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A directory in the way: the rename fails after the temporary file was made.
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o644, KeepGroup); err == nil {
		t.Fatal("no error")
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// No file is written in place, where a reader could see a part.
func TestReadersNeverSeeAPartialFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	contents := []string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)}
	if err := Write(path, []byte(contents[0]), 0o644, KeepGroup); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := Write(path, []byte(contents[i%2]), 0o644, KeepGroup); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 200 {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(got); s != contents[0] && s != contents[1] {
			t.Fatalf("read %d bytes of mixed content", len(s))
		}
	}
	close(stop)
	writer.Wait()
}
