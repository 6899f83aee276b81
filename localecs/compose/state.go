package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Container is a container of the project in the engine.
type Container struct {
	// ID and Image are the engine's; ECS shows both.
	ID, Image string
	// Task and Name are from the labels; Name is empty for the holder of the task's network.
	Task, Name string
	// Status is created, running, paused, restarting, removing, exited or dead.
	Status   string
	ExitCode int
	// OutOfMemory is set if the kernel killed it.
	OutOfMemory  bool
	RestartCount int
	// Times are zero until they are known.
	StartedAt, FinishedAt time.Time
	// Health is nil without a health check.
	Health *Health
	// Networks are where it is attached, each with IP, CIDR, Gateway and MAC.
	Networks []network.Addressing
}

// Health is a container's health in the engine.
type Health struct {
	// Status is starting, healthy or unhealthy.
	Status string
	// At, ExitCode and Output are those of the last check.
	At       time.Time
	ExitCode int
	Output   string
}

// State is the project as of the last update. It is safe for concurrent use.
type State struct {
	cluster cluster.ClusterFacts
	mu      sync.Mutex
	tasks   []*task
	// past are former runs, which ECS shows for an hour.
	past []Task
}

// keepPast is the time for which ECS shows a stopped task.
const keepPast = time.Hour

// task is one task of the project, and the run of it that is now.
type task struct {
	FileTask
	id    string // empty before its first run
	facts metadata.Facts
	// holder and containers are the engine's, the latter by name; removed ones keep their last
	// state.
	holder     Container
	containers map[string]Container
	// asked is when the engine was last asked to stop a container, by name.
	asked map[string]time.Time
	// ours is set if this program stops the containers, as ECS's agent does.
	ours   bool
	health map[string]*scheduler.HealthView
	view   scheduler.View
}

// NewState returns the state of a project without containers. The definitions are valid.
func NewState(cluster cluster.ClusterFacts, tasks []FileTask) *State {
	s := &State{cluster: cluster}
	for _, t := range tasks {
		s.tasks = append(s.tasks, &task{FileTask: t, asked: map[string]time.Time{}})
	}
	return s
}

// asked records that the engine was asked to stop a container.
func (s *State) asked(taskName, container string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.Name == taskName {
			t.asked[container] = at
		}
	}
}

// update sets the engine's containers and returns the tasks that have started.
func (s *State) update(containers []Container, now time.Time) (newTasks []Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		of := func(name string) int {
			return slices.IndexFunc(containers, func(c Container) bool { return c.Task == t.Name && c.Name == name })
		}
		if i := of(""); i >= 0 {
			t.holder = containers[i]
			if id := runID(t.holder); id != "" && id != t.id {
				s.end(t, now)
				t.begin(id, s.cluster)
				newTasks = append(newTasks, t.outside())
			}
		} else {
			t.holder.Status = "removed"
		}
		if t.id == "" {
			continue
		}
		for _, d := range t.Definition.ContainerDefinitions {
			t.see(d.Name, containers, of(d.Name))
		}
		t.view = t.look(now)
	}
	return newTasks
}

// end records the run that another one replaces.
func (s *State) end(t *task, now time.Time) {
	s.past = slices.DeleteFunc(s.past, func(old Task) bool { return now.Sub(old.View.StoppedAt) > keepPast })
	if t.id == "" {
		return
	}
	old := t.outside()
	old.View.DesiredStatus, old.View.KnownStatus = scheduler.StatusStopped, scheduler.StatusStopped
	if old.View.StoppedAt.IsZero() {
		old.View.StoppedAt = now
	}
	s.past = append(s.past, old)
}

// begin resets the task for a new run.
func (t *task) begin(id string, cluster cluster.ClusterFacts) {
	t.id = id
	t.containers, t.health = map[string]Container{}, map[string]*scheduler.HealthView{}
	t.asked, t.ours = map[string]time.Time{}, false
	t.view = scheduler.View{PullStartedAt: t.holder.StartedAt, PullStoppedAt: t.holder.StartedAt}
	t.facts = cluster.Task(id, t.Definition, nil, t.holder.addressing(cluster.Account.Region))
	for name, f := range t.facts.Containers {
		f.EndpointID = endpointID(t.Name, name)
		t.facts.Containers[name] = f
	}
}

// see sets a container of the task, at index i or missing. One that has not been started since the
// task started belongs to the former run.
func (t *task) see(name string, containers []Container, i int) {
	old, known := t.containers[name]
	switch {
	case i >= 0 && !containers[i].StartedAt.Before(t.holder.StartedAt) || i >= 0 && containers[i].StartedAt.IsZero():
		t.containers[name] = containers[i]
		f := t.facts.Containers[name]
		f.ImageID = containers[i].Image
		t.facts.Containers[name] = f
	case i < 0 && known && !stopped(old): // removed while it ran
		old.Status, old.FinishedAt = "dead", time.Time{}
		t.containers[name] = old
	}
}

// runID identifies a run of a task: each start of its holder is a new one.
func runID(holder Container) string {
	if holder.StartedAt.IsZero() {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", holder.ID, holder.StartedAt.UnixNano()))
	return hex.EncodeToString(sum[:16])
}

// addressing returns the task's address, preferably not that in the endpoints' network.
func (c Container) addressing(region string) network.Addressing {
	var best network.Addressing
	for _, a := range c.Networks {
		if !best.IP.IsValid() || best.CIDR.Contains(netip.MustParseAddr(network.MetadataIP)) {
			best = a
		}
	}
	best.Resolver, best.SearchDomain = netip.MustParseAddr("127.0.0.11"), shapes.SearchDomain(region) // the engine's
	best.PrivateDNSName = shapes.PrivateDNSName(best.IP, best.SearchDomain)
	return best
}

// Task is a snapshot of a task of the project.
type Task struct {
	Name, ID   string
	Definition *taskdef.TaskDefinition
	Facts      metadata.Facts
	View       scheduler.View
}

// outside returns a snapshot of the task.
func (t *task) outside() Task {
	known := t.facts
	known.Containers = maps.Clone(known.Containers)
	return Task{Name: t.Name, ID: t.id, Definition: t.Definition, Facts: known, View: t.view}
}

// Tasks returns the tasks that have started.
func (s *State) Tasks() []Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Task
	for _, t := range s.tasks {
		if t.id != "" {
			all = append(all, t.outside())
		}
	}
	return all
}

// lookup implements metadata.Options.Lookup.
func (s *State) lookup(endpointID string) (metadata.Snapshot, bool) {
	for _, t := range s.Tasks() {
		for _, c := range t.Facts.Containers {
			if c.EndpointID == endpointID {
				return metadata.At(time.Now(), t.Facts, t.View), true
			}
		}
	}
	return metadata.Snapshot{}, false
}

// containerID returns the engine's ID of a container, "" before it is created.
func (s *State) containerID(taskName, container string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.Name == taskName {
			return t.containers[container].ID
		}
	}
	return ""
}
