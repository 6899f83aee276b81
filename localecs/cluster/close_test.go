package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// A task that is made while the cluster is closed is closed with it, and
// nothing is made after it: its volumes would stay.
func TestCloseWaitsForTasksBeingStarted(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	def := &taskdef.TaskDefinition{
		Family: "web", NetworkMode: "awsvpc", Volumes: []taskdef.Volume{{Name: "data"}}, ContainerDefinitions: []taskdef.Container{shell("a", "sleep 1000")},
	}
	// Opening it to write waits for a reader.
	log := w.LogFile("web", "a")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), syscall.Mkfifo(log, 0o600)); err != nil {
		t.Fatal(err)
	}
	made, closed := make(chan *Task, 1), make(chan error, 1)
	go func() {
		task, err := w.Run("web", def)
		if err != nil {
			t.Errorf("what began before: %v", err)
		}
		made <- task
	}()
	testkit.Eventually(t, "the task is being made", func() bool {
		volumes, _ := filepath.Glob(filepath.Join(w.volumeDir(), "*", "data"))
		return len(volumes) == 1
	})
	go func() { closed <- w.Close() }()
	testkit.Eventually(t, "nothing begins", func() bool {
		end, ok := w.starting.Begin()
		if ok {
			end()
		}
		return !ok
	})
	if _, err := w.Run("late", def); !errors.Is(err, errClosed) {
		t.Errorf("what begins now: %v", err)
	}
	select {
	case <-closed:
		t.Fatal("the cluster has not waited")
	case <-time.After(300 * time.Millisecond):
	}
	reader, err := os.OpenFile(log, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if task := <-made; task != nil {
		<-task.Done()
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.volumeDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("volumes are left: %v", err)
	}
}
