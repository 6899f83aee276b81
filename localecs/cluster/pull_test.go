package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// registry is a runtime whose pulls do not end by themselves.
type registry struct {
	containers
	asked, ended chan struct{} // each gets one per pull
}

func (r registry) Pull(ctx context.Context, _ string) (runtime.Image, error) {
	r.asked <- struct{}{}
	<-ctx.Done()
	r.ended <- struct{}{}
	return runtime.Image{}, ctx.Err()
}

// slowRegistry makes every pull of the cluster hang.
func slowRegistry(w *fixture) registry {
	r := registry{w.runtime, make(chan struct{}, 1), make(chan struct{}, 1)}
	w.runtime = r
	return r
}

func TestPullEndsWithItsTask(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	r := slowRegistry(w)
	for name, end := range map[string]func(*Task){
		"stop": func(task *Task) { task.stop("", "enough") },
		"kill": (*Task).KillAll,
	} {
		task := w.run(t, nil, helper("a", "run", "0s", "0"))
		<-r.asked
		end(task)
		if v := wait(t, task); v.Containers[0].ExitCode != nil || v.DesiredStatus != scheduler.StatusStopped {
			t.Errorf("%s: %+v", name, v)
		}
		<-r.ended
	}
}

func TestCloseEndsPulls(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	r := slowRegistry(w)
	w.run(t, nil, helper("a", "run", "0s", "0"))
	<-r.asked
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the cluster waits for a pull")
	}
}

func TestPullOfServiceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	r := slowRegistry(w)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-r.asked
		cancel()
	}()
	if _, err := w.StartService(ctx, Service{Name: "server", Image: "tools"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
}
