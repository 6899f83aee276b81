package awsutil

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// AwaitPause is the usual pause between two reads while containers stop. The
// endpoint allows the whole task 40 reads per second.
const AwaitPause = 250 * time.Millisecond

// TaskReader is how AwaitTask reads the task. It bounds each read; an answer that is
// not valid is an error.
type TaskReader func(context.Context) (workload.Task, error)

// AwaitTask reads the task, at once and then pause after each answer, until done
// returns true for a valid one. A failed read means nothing. When ctx ends first
// AwaitTask returns the cause.
func AwaitTask(ctx context.Context, log hclog.Logger, read TaskReader, pause time.Duration, done func(workload.Task) bool) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failing := false; ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		task, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !failing:
			log.Warn("task metadata cannot be read, trying again", logkey.Error, err)
		case err == nil && failing:
			log.Info("task metadata can be read again")
		}
		if failing = err != nil; !failing && done(task) {
			return nil
		}
		timer.Reset(pause)
	}
}

// AwaitStopped awaits that none of the containers that which picks is running.
// With an error it returns the names of those that ran at the last valid answer.
func AwaitStopped(ctx context.Context, log hclog.Logger, read TaskReader, pause time.Duration, which func(workload.Task) []workload.Container) (running []string, err error) {
	err = AwaitTask(ctx, log, read, pause, func(task workload.Task) bool {
		names := workload.Running(which(task))
		if len(names) > 0 && !slices.Equal(running, names) {
			log.Info("waiting for containers", logkey.Container, names)
		}
		running = names
		return len(names) == 0
	})
	return running, err
}
