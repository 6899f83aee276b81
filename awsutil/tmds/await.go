package tmds

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// awaitPause lies between two reads of AwaitStopped; the endpoint allows the
// whole task 40 reads per second.
const awaitPause = 250 * time.Millisecond

// AwaitStopped reads the task until a valid answer shows that none of the
// containers that which picks is running. A failed read says nothing about
// them. When ctx ends first it returns the cause, and the names of those that
// ran at the last valid answer. read bounds each attempt.
func AwaitStopped(ctx context.Context, log hclog.Logger, read func(context.Context) (workload.Task, error), which func(workload.Task) []workload.Container) (running []string, err error) {
	for blind := false; ; {
		task, err := read(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !blind:
			log.Warn("task metadata unreadable, waiting on", logkey.Error, err)
			blind = true
		case err == nil:
			names := workload.Running(which(task))
			if len(names) == 0 {
				return nil, nil
			}
			if !slices.Equal(running, names) {
				log.Info("waiting for containers", logkey.Container, names)
			}
			running = names
		}
		select {
		case <-time.After(awaitPause):
		case <-ctx.Done():
			return running, context.Cause(ctx)
		}
	}
}
