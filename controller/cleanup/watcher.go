package cleanup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// lateTags is for how long a task without tags is described again: AWS may show
// the tags of a new task late.
const lateTags = 5 * time.Minute

// again is how often namespaces that are there are checked: another process may have
// deleted one.
const again = time.Hour

// ECS says which tasks there are; *ecsread.Reader does.
type TaskReader interface {
	List(ctx context.Context, cluster, desiredStatus string, each func(id string)) error
	Describe(ctx context.Context, cluster string, ids []string) (ecsread.Answer, error)
	Counts() ecsread.Counts
}

// Watcher is an ECS that remembers which tasks were listed as running. It is not
// safe for concurrent use.
type Watcher struct {
	TaskReader
	// Cluster is the ARN of the tasks' cluster.
	Cluster string
	// Partition is the controller's admin partition; empty turns Follow off.
	Partition string
	// Ensure makes namespaces that are missing.
	Ensure func(ctx context.Context, names []string) error
	Log    hclog.Logger

	running map[string]struct{}
	// tasks are the described ones that run, with their namespace or nothing.
	tasks map[string]string
	// untagged are those without tags, since they were first described.
	untagged map[string]time.Time
	// ensured are the namespaces that are known to be there, since checked.
	ensured map[string]struct{}
	checked time.Time
}

// List lists tasks, and remembers the running ones if it got all of them.
func (w *Watcher) List(ctx context.Context, cluster, desiredStatus string, each func(id string)) error {
	if w.Partition == "" || desiredStatus != ecsread.Running {
		return w.TaskReader.List(ctx, cluster, desiredStatus, each)
	}
	running := map[string]struct{}{}
	err := w.TaskReader.List(ctx, cluster, desiredStatus, func(id string) {
		running[id] = struct{}{}
		each(id)
	})
	if err == nil {
		w.running = running
	}
	return err
}

// Follow makes the namespaces of the tasks that were last listed as running.
// Tasks that could not be described are for the next call; the error says why.
func (w *Watcher) Follow(ctx context.Context) error {
	if w.Partition == "" {
		return nil
	}
	describeErr := w.describe(ctx)
	names := map[string]struct{}{}
	for _, name := range w.tasks {
		if name != "" {
			names[name] = struct{}{}
		}
	}
	if err := w.ensure(ctx, names); err != nil {
		return fmt.Errorf("make namespaces of tasks: %w", err)
	}
	if describeErr != nil {
		return fmt.Errorf("read the tags of tasks: %w", describeErr)
	}
	return nil
}

// describe learns the namespaces of tasks that it does not know yet.
func (w *Watcher) describe(ctx context.Context) error {
	if w.tasks == nil {
		w.tasks, w.untagged = map[string]string{}, map[string]time.Time{}
	}
	forget(w.tasks, w.running)
	forget(w.untagged, w.running)
	var unknown []string
	for id := range w.running {
		if _, known := w.tasks[id]; !known {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	answer, err := w.TaskReader.Describe(ctx, w.Cluster, unknown)
	for _, t := range answer.Tasks {
		if len(t.Tags) == 0 && w.mayBeLate(t.ID) {
			continue
		}
		name, wrong := namespace(t.Tags, w.Partition)
		if wrong != "" {
			w.Log.Error(wrong, logkey.TaskID, t.ID, logkey.Namespace, t.Tags[tagNamespace])
		}
		w.tasks[t.ID] = name
	}
	return err
}

// mayBeLate reports whether the tags of a task without any may still come.
func (w *Watcher) mayBeLate(id string) bool {
	first, ok := w.untagged[id]
	if !ok {
		first = time.Now()
		w.untagged[id] = first
	}
	return time.Since(first) < lateTags
}

// forget removes the tasks that run no more.
func forget[V any](tasks map[string]V, running map[string]struct{}) {
	maps.DeleteFunc(tasks, func(id string, _ V) bool {
		_, runs := running[id]
		return !runs
	})
}

// ensure asks Consul only when a name is new, or for a long time was not looked
// at; the first time also without a name, for the partition's own default.
func (w *Watcher) ensure(ctx context.Context, names map[string]struct{}) error {
	old := w.checked.IsZero() || time.Since(w.checked) >= again
	for name := range names {
		if _, known := w.ensured[name]; !known {
			old = true
		}
	}
	if !old {
		return nil
	}
	if err := w.Ensure(ctx, slices.Sorted(maps.Keys(names))); err != nil {
		return err
	}
	w.ensured, w.checked = names, time.Now()
	return nil
}
