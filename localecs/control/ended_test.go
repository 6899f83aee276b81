package control_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestEndedReportsTheResultOfAFinishedRun(t *testing.T) {
	t.Parallel()
	top, start := t.TempDir(), time.Now()
	dir := filepath.Join(top, "web")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, &fakeController{status: "STOPPED"})
	if got, err := control.Ended(top, start); got != nil || err != nil {
		t.Errorf("before the end: %+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := &control.State{
		Name: "test", Command: "run", Version: version, Directory: dir, Ended: true,
		Tasks: []control.Task{web("STOPPED")}, Services: []shapes.Service{},
	}
	for _, place := range []string{top, dir} {
		if got, err := control.Ended(place, start); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%v, (-want +got):\n%s", err, cmp.Diff(want, got))
		}
	}
	if got, err := control.Ended(top, time.Now().Add(time.Hour)); got != nil || err != nil {
		t.Errorf("of a run before that: %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, control.EndFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := control.Ended(top, start); got != nil || err == nil {
		t.Errorf("a file that is broken: %+v, %v", got, err)
	}
}
