package broker

import (
	"context"
	"sync"
)

// jobs are the goroutines of a leadership. A request starts them through the queue, and they go on
// when its answer is written. Each has the context of the leadership, which ends after the last of
// them: so what a job has begun with a backend or the store is completed or undone before another
// broker leads.
type jobs struct {
	queue   chan func(context.Context)
	done    <-chan struct{}
	running sync.WaitGroup
}

func newJobs(ctx context.Context) *jobs {
	return &jobs{queue: make(chan func(context.Context)), done: ctx.Done()}
}

// start hands a job to serve. It returns false when the leadership has ended.
func (j *jobs) start(job func(context.Context)) bool {
	select {
	case j.queue <- job:
		return true
	case <-j.done:
		return false
	}
}

// ended reports whether the leadership has ended.
func (j *jobs) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// serve runs the first jobs and those of the queue until the context ends.
func (j *jobs) serve(ctx context.Context, first ...func(context.Context)) {
	for _, job := range first {
		j.running.Go(func() { job(ctx) })
	}
	for {
		select {
		case job := <-j.queue:
			j.running.Go(func() { job(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

// wait returns when no job runs. It is called after serve.
func (j *jobs) wait() { j.running.Wait() }
