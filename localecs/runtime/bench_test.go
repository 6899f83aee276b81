package runtime

import (
	"sync"
	"testing"
	"time"
)

// BenchmarkStart starts one container after the other, each until its program runs.
func BenchmarkStart(b *testing.B) {
	r := newRuntime(b)
	task := newTask(b)
	img := toolbox(b)
	for b.Loop() {
		c, err := r.Start(Spec{Name: "app", Image: img, netNS: task.File(), Args: []string{"/bin/sleep", "1000"}})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.Kill()
		<-c.Done()
		b.StartTimer()
	}
}

// BenchmarkStart50 starts fifty containers at once.
func BenchmarkStart50(b *testing.B) {
	r := newRuntime(b)
	task := newTask(b)
	img := toolbox(b)
	for b.Loop() {
		var wg sync.WaitGroup
		containers := make([]*Container, 50)
		for i := range containers {
			wg.Go(func() {
				c, err := r.Start(Spec{Name: "app", Image: img, netNS: task.File(), Args: []string{"/bin/sleep", "1000"}})
				if err != nil {
					b.Error(err)
					return
				}
				containers[i] = c
			})
		}
		wg.Wait()
		b.StopTimer()
		for _, c := range containers {
			c.Kill()
			<-c.Done()
		}
		b.StartTimer()
	}
}

// BenchmarkExec runs a probe that does nothing, from call to result.
func BenchmarkExec(b *testing.B) {
	r := newRuntime(b)
	task := newTask(b)
	c, err := r.Start(Spec{Name: "app", Image: toolbox(b), netNS: task.File(), Args: []string{"/bin/sleep", "1000"}})
	if err != nil {
		b.Fatal(err)
	}
	spec := Shell("exit 0")
	spec.Timeout = 5 * time.Second
	for b.Loop() {
		if got := c.Exec(b.Context(), spec); got.Code != 0 {
			b.Fatalf("%+v", got)
		}
	}
}
