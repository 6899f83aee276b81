package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// fakeController is a Controller that tests change.
type fakeController struct {
	mu      sync.Mutex
	status  string
	stopped []string
	ended   bool
	// session is what sessions do; nil is none.
	session func(context.Context, control.Request, runtime.Session) (int, error)
}

func (w *fakeController) Attach(ctx context.Context, r control.Request, s runtime.Session) (int, error) {
	return w.session(ctx, r, s)
}

func (w *fakeController) Visit(ctx context.Context, r control.Request, s runtime.Session) (int, error) {
	return w.session(ctx, r, s)
}

func web(status string) control.Task {
	return control.Task{
		Name: "web", Task: shapes.Task{
			TaskARN: "arn:task/default/aaaa", LastStatus: status, StartedAt: shapes.At(start),
		},
	}
}

func (w *fakeController) State() control.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return control.State{Tasks: []control.Task{web(w.status)}, Services: []shapes.Service{}}
}

func (w *fakeController) set(status string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *fakeController) Stop(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "none" {
		return errors.New("no task none")
	}
	w.stopped = append(w.stopped, id)
	return nil
}

func (w *fakeController) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

const version = "v1"

// serve serves a fakeController in a directory.
func serve(t *testing.T, dir string, w *fakeController) *control.Server {
	t.Helper()
	s, err := control.Serve(control.ServerOptions{Command: "run", Name: "test", Version: version, Directory: dir,
		Controller: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// long returns a directory whose socket's path is longer than the kernel takes.
func long(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStateIsServedOnTheSocket(t *testing.T) {
	t.Parallel()
	dir, w := long(t), &fakeController{status: "RUNNING"}
	s := serve(t, dir, w)
	st, err := os.Lstat(filepath.Join(dir, control.SocketName))
	if err != nil || st.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", st.Mode(), err)
	}
	c, err := control.Dial(t.Context(), filepath.Dir(dir), version)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.State(t.Context())
	want := control.State{
		Name: "test", Command: "run", Version: version, Directory: dir,
		Tasks: []control.Task{web("RUNNING")}, Services: []shapes.Service{},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if err := errors.Join(c.Stop(t.Context(), "aaaa", "bbbb"), c.End(t.Context())); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"aaaa", "bbbb"}, w.stopped); diff != "" || !w.ended {
		t.Errorf("ended %v, stopped (-want +got):\n%s", w.ended, diff)
	}
	if err := c.Stop(t.Context(), "none"); err == nil || err.Error() != "no task none" {
		t.Errorf("a task that there is not: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.State(t.Context()); !errors.Is(err, control.ErrGone) {
		t.Errorf("after the end: %v", err)
	}
	left, err := os.ReadDir(dir)
	if len(left) != 1 {
		t.Fatalf("left %v, %v", left, err)
	}
	testkit.Equal(t, "left[0].Name()", left[0].Name(), control.EndFile)
	if err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestWatchReportsEveryChangeAndTheEnd(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), &fakeController{status: "PENDING"}
	s := serve(t, dir, w)
	c, err := control.Dial(t.Context(), dir, version)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	closed := make(chan error, 1)
	err = c.Watch(t.Context(), func(s2 control.State) bool {
		status := s2.Tasks[0].LastStatus
		seen = append(seen, status)
		switch {
		case s2.Ended:
			seen = append(seen, "ended")
		case status == "PENDING":
			w.set("RUNNING")
		case status == "RUNNING":
			w.set("STOPPED")
			go func() { closed <- s.Close() }()
		}
		return false
	})
	if diff := cmp.Diff([]string{"PENDING", "RUNNING", "STOPPED", "ended"}, without(seen, "STOPPED", 1)); diff != "" ||
		err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// without leaves only so many of a word.
func without(words []string, word string, max int) (kept []string) {
	for _, w := range words {
		if w == word {
			if max--; max < 0 {
				continue
			}
		}
		kept = append(kept, w)
	}
	return kept
}

func TestOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, &fakeController{})
	c, err := control.Dial(t.Context(), dir, "v2")
	if err != nil {
		t.Fatal(err)
	}
	const want = "localecs version mismatch: this is v2, the run has v1: use the version of the run"
	if _, err := c.State(t.Context()); err == nil || err.Error() != want {
		t.Errorf("state: got %v, want %s", err, want)
	}
	if _, err := c.Attach(t.Context(), control.Request{}, newPipes(t).Session); err == nil || err.Error() != want {
		t.Errorf("session: got %v, want %s", err, want)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := func(name string) string {
		d := filepath.Join(root, name)
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		return d
	}
	find := func(d string) (string, string) {
		found, err := control.Find(t.Context(), d)
		if err != nil {
			return found, err.Error()
		}
		return found, ""
	}
	const remedy = ": start localecs run or localecs serve there, or name its directory with -dir"
	if _, said := find(filepath.Join(root, "none")); said != "nothing runs below "+root+"/none"+remedy {
		t.Error(said)
	}
	l, err := control.Listen(dir("dead")) // as kill -9 leaves it
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, said := find(root); said != "nothing runs below "+root+remedy+"; the run in "+root+"/dead was killed" {
		t.Error(said)
	}
	serve(t, dir("a"), &fakeController{})
	if found, said := find(root); found != root+"/a" || said != "" {
		t.Errorf("%s, %s", found, said)
	}
	if found, _ := find(root + "/a"); found != root+"/a" {
		t.Error(found)
	}
	serve(t, dir("dead"), &fakeController{})
	if _, said := find(root); said != "2 runs are below "+root+": name one with -dir "+root+"/a or -dir "+root+"/dead" {
		t.Error(said)
	}
}

func TestListenNeedsItsDirectory(t *testing.T) {
	t.Parallel()
	if _, err := control.Listen(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, control.SocketName, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Serve(control.ServerOptions{Directory: dir}); err == nil {
		t.Error("another file is in the way, without an error")
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, &fakeController{})
	c, err := control.Dial(t.Context(), dir, version)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	err = c.Watch(ctx, func(control.State) bool {
		cancel(enough)
		return false
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
