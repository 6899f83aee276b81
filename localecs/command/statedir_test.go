package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestStateDirIsEmptiedAndKeepsOthersOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b")
	old := filepath.Join(path, "volumes", "task", "secret")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"timeline.json", "timeline.html", "state.json"} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first, err := openStateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "volumes")); !os.IsNotExist(err) {
		t.Errorf("an earlier run's volumes are still there: %v", err)
	}
	if second, err := openStateDir(path); err == nil || !strings.Contains(err.Error(), "another localecs is using "+path) {
		t.Errorf("got %v, %v while another run has it", second, err)
	}
	other, err := openStateDir(filepath.Join(filepath.Dir(path), "other"))
	if err != nil {
		t.Errorf("the directory beside it: %v", err)
	}
	other.Close()
	first.Close()
	again, err := openStateDir(path)
	if err != nil {
		t.Errorf("after the first run: %v", err)
	}
	again.Close()
}

func TestStateDirRefusesForeignDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "named")
	if err := os.MkdirAll(filepath.Join(named, "control"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		named:                     `contains "control", which is not of a run`,
		dir:                       `contains "file", which is not of a run`,
		file:                      "-dir: mkdir " + file + ": not a directory",
		filepath.Join(file, "x"):  "-dir: mkdir " + file + ": not a directory",
		"/proc/nothing/can/be/it": "-dir: mkdir /proc/nothing",
	} {
		if got, err := openStateDir(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", path, got, err, want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("another program's file is gone: %v", err)
	}
}

// The processes of a run that was killed a moment ago may still be writing.
func TestStateDirIsEmptiedUnderItsWriters(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	data := filepath.Join(path, "volumes", "task", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	started := make(chan struct{}, 4)
	for writer := range cap(started) {
		writing.Go(func() {
			for i := range 5000 {
				if os.WriteFile(filepath.Join(data, fmt.Sprint(writer, "-", i)), nil, 0o644) != nil {
					break // the directory has gone
				}
				if i == 0 {
					started <- struct{}{}
				}
			}
		})
	}
	for range cap(started) {
		<-started
	}
	dir, err := openStateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	writing.Wait()
	if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
