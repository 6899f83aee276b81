package awsutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// AwaitPause is the usual pause between two reads while containers stop. The
// endpoint allows the whole task 40 reads per second.
const AwaitPause = 250 * time.Millisecond

// firstPause and firstPauseMax bound the pauses before the first valid answer, which are
// start-up time. Several containers of a task wait for it at the same time.
const firstPause, firstPauseMax = 50 * time.Millisecond, 500 * time.Millisecond

// TaskReader is how FirstTask and AwaitTask read the task. It bounds each read; an answer
// that is not valid is an error.
type TaskReader func(context.Context) (workload.Task, error)

// FirstTask reads the task at a command's start. It retries after every error: the endpoint
// of a starting task may answer errors, or a task without an address, for a moment. limit is
// that of the command's flag for its start, else retry.StartLimit; less after TERM, and 0,
// which is none, where giving up would end a task that serves without the answer.
func FirstTask(ctx context.Context, log hclog.Logger, read TaskReader, limit time.Duration) (workload.Task, error) {
	var task workload.Task
	policy := retry.Policy{Base: firstPause, Max: firstPauseMax, Limit: limit}
	err := retry.Do(ctx, policy, log, "read task metadata", retry.Always, func(ctx context.Context) (err error) {
		task, err = read(ctx)
		return err
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, workload.ErrIncomplete):
		err = fmt.Errorf("read task metadata: %w (ECS has not added it since the task started: check the ECS agent "+
			"on the task's host)", err)
	default:
		err = fmt.Errorf("read task metadata: %w (only ECS answers there: check the ECS agent and network rules on "+
			"its host; on Fargate, platform 1.4.0 or later)", err)
	}
	return task, err
}

// FirstUsableTask reads, as FirstTask does, a task that use can take. It waits while use returns
// workload.ErrIncomplete; any other error of use is a mistake, returned with the task.
func FirstUsableTask(
	ctx context.Context, log hclog.Logger, read TaskReader, limit time.Duration, use func(workload.Task) error,
) (workload.Task, error) {
	var mistake error
	task, err := FirstTask(ctx, log, func(ctx context.Context) (workload.Task, error) {
		task, err := read(ctx)
		if err != nil {
			return task, err
		}
		if mistake = use(task); errors.Is(mistake, workload.ErrIncomplete) {
			return workload.Task{}, mistake
		}
		return task, nil
	}, limit)
	if err == nil && mistake != nil {
		err = &exit.UsageError{Err: mistake}
	}
	return task, err
}

// AwaitTask reads the task, at once and then pause after each answer, until done
// returns true for a valid one. A failed read means nothing. When ctx ends first
// AwaitTask returns the cause.
func AwaitTask(
	ctx context.Context, log hclog.Logger, read TaskReader, pause time.Duration, done func(workload.Task) bool,
) error {
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
func AwaitStopped(
	ctx context.Context, log hclog.Logger, read TaskReader, pause time.Duration,
	which func(workload.Task) []workload.Container,
) (running []string, err error) {
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
