package subcommand

import (
	"context"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/controller"
	"github.com/meshtask/consul-ecs/controller/cleanup"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// passAdapter adapts setup and cleanup to controller.Ports.
type passAdapter struct {
	setup *setup.Setup
	// namespaces is also the ECS of cleaner.
	namespaces *cleanup.Watcher
	cleaner    *cleanup.Cleaner
}

func (w *passAdapter) ensure(ctx context.Context) (int, error) {
	changes, err := w.setup.Ensure(ctx)
	return len(changes), err
}

func (w *passAdapter) ensureNamespaces(ctx context.Context, names []string) error {
	_, err := w.setup.EnsureNamespaces(ctx, names)
	return err
}

// pass looks at all tasks, makes their namespaces, and deletes what dead ones
// left. What could not be deleted is no error of a pass: it is logged, and tried
// again by the next one.
func (w *passAdapter) pass(ctx context.Context) (controller.Result, error) {
	before := w.namespaces.Counts()
	report, err := w.cleaner.Look(ctx)
	if followErr := w.namespaces.Follow(ctx); followErr != nil && ctx.Err() == nil {
		w.namespaces.Log.Warn("namespaces of tasks not made, trying again", logkey.Error, followErr)
	}
	deleteErr := w.cleaner.Apply(ctx, &report)
	if deleteErr != nil && ctx.Err() == nil {
		w.cleaner.Log.Warn("deletions failed, trying again", logkey.Failed, len(report.Failed), logkey.Error, deleteErr)
	}
	return result(report, w.namespaces.Counts().Sub(before)), err
}

// result converts a report.
func result(report cleanup.Report, spent ecsread.Counts) controller.Result {
	r := controller.Result{
		Tasks: report.Running, Tokens: report.Tokens, Services: report.Services, Foreign: report.Foreign,
		Kept: map[string]int{}, Deleted: map[controller.Deletion]int{}, Failed: len(report.Failed),
		AWSCalls: spent.Calls, Throttles: spent.Throttles,
	}
	for _, k := range report.Kept {
		r.Kept[string(k.Why)]++
		if k.Again > 0 && (r.Again == 0 || k.Again < r.Again) {
			r.Again = k.Again
		}
	}
	for _, i := range report.Deleted {
		r.Deleted[controller.Deletion{Kind: i.Kind, Reason: string(i.Reason)}]++
	}
	return r
}
