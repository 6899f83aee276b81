package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// lateTags is for how long a task without tags is described again: AWS may show
	// the tags of a new task late.
	lateTags = 5 * time.Minute
	// recheck is how often existing namespaces are checked: another process may have
	// deleted one.
	recheck = time.Hour
)

// Tags of ECS tasks in the mesh.
const (
	tagMesh      = "consul.hashicorp.com/mesh"
	tagPartition = "consul.hashicorp.com/partition"
	tagNamespace = "consul.hashicorp.com/namespace"
)

// defaultName is the partition, and the namespace, of tasks without tags.
const defaultName = "default"

// Mistakes in a task's tags, for the log.
const (
	// halfPlace does not define where the task is to be.
	halfPlace = "task has only one of the tags for partition and namespace, want both or none"
	// badName would be refused by Consul in each pass.
	badName = "invalid namespace in the task's tag: want at most 63 letters, digits and hyphens, not at its ends"
)

// namespaces caches the namespaces of running tasks.
type namespaces struct {
	// tasks maps the described running tasks to their namespace, or to "".
	tasks map[string]string
	// untagged maps those without tags to when they were first described.
	untagged map[string]time.Time
	// ensured are the namespaces that existed at checked.
	ensured map[string]struct{}
	checked time.Time
}

// ensureNamespaces makes the namespaces of running tasks. Tasks that could not be
// described are left to the next call; the error has the reason.
func (c *Cleaner) ensureNamespaces(ctx context.Context, running map[string]struct{}) error {
	if c.Partition == "" || running == nil {
		return nil
	}
	describeErr := c.readTags(ctx, running)
	names := map[string]struct{}{}
	for _, name := range c.namespaces.tasks {
		if name != "" {
			names[name] = struct{}{}
		}
	}
	if err := c.ensure(ctx, names); err != nil {
		return fmt.Errorf("create namespaces of tasks: %w", err)
	}
	if describeErr != nil {
		return fmt.Errorf("read the tags of tasks: %w", describeErr)
	}
	return nil
}

// readTags describes the tasks whose namespace is unknown.
func (c *Cleaner) readTags(ctx context.Context, running map[string]struct{}) error {
	n := &c.namespaces
	retain(n.tasks, running)
	retain(n.untagged, running)
	var unknown []string
	for id := range running {
		if _, known := n.tasks[id]; !known {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	answer, err := c.ECS.Describe(ctx, c.Cluster.ARN, unknown)
	for _, t := range answer.Tasks {
		if len(t.Tags) == 0 && n.mayBeLate(t.ID) {
			continue
		}
		name, mistake := namespace(t.Tags, c.Partition)
		if mistake != "" {
			c.Log.Error(mistake, logkey.TaskID, t.ID, logkey.Namespace, t.Tags[tagNamespace])
		}
		n.tasks[t.ID] = name
	}
	return err
}

// mayBeLate reports whether the tags of a task without any may still appear.
func (n *namespaces) mayBeLate(id string) bool {
	first, ok := n.untagged[id]
	if !ok {
		first = time.Now()
		n.untagged[id] = first
	}
	return time.Since(first) < lateTags
}

// retain removes the tasks that are not running.
func retain[V any](tasks map[string]V, running map[string]struct{}) {
	maps.DeleteFunc(tasks, func(id string, _ V) bool {
		_, ok := running[id]
		return !ok
	})
}

// ensure calls EnsureNamespaces if a name is new or the last check is old; the first
// time also without a name, for the partition's default namespace.
func (c *Cleaner) ensure(ctx context.Context, names map[string]struct{}) error {
	n := &c.namespaces
	due := n.checked.IsZero() || time.Since(n.checked) >= recheck
	for name := range names {
		if _, known := n.ensured[name]; !known {
			due = true
		}
	}
	if !due {
		return nil
	}
	if _, err := c.EnsureNamespaces(ctx, slices.Sorted(maps.Keys(names))); err != nil {
		return err
	}
	n.ensured, n.checked = names, time.Now()
	return nil
}

// namespace returns the namespace that a task's tags name in the partition; empty if
// the task is not in it, or with a mistake.
func namespace(tags map[string]string, partition string) (name, mistake string) {
	if tags[tagMesh] != "true" {
		return "", ""
	}
	p, hasPartition := tags[tagPartition]
	n, hasNamespace := tags[tagNamespace]
	switch {
	case hasPartition != hasNamespace:
		return "", halfPlace
	case !hasPartition:
		p, n = defaultName, defaultName
	}
	switch {
	case p != partition:
		return "", ""
	case n != "" && !config.IsDNSLabel(n):
		return "", badName
	}
	return n, ""
}
