package compose

import (
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// toStop returns the IDs of the containers that ECS's agent would stop now: of tasks whose essential
// container has exited by itself, in reverse dependsOn order, so that each stops after those that
// depend on it, and the holder of the network last. Tasks that the engine was asked to stop are
// excluded. It is for one caller, which stops the containers.
func (s *State) toStop() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, t := range s.tasks {
		if t.id == "" || t.essentialEnded() == "" || t.anyAsked() && !t.ours {
			continue
		}
		t.ours = true
		ids = append(ids, t.next()...)
	}
	return ids
}

// next returns the task's running containers that no other running one depends on.
func (t *task) next() (ids []string) {
	running := map[string]Container{}
	for name, c := range t.containers {
		if !stopped(c) && !c.StartedAt.IsZero() {
			running[name] = c
		}
	}
	if len(running) == 0 && t.holder.Status == "running" && !t.stopRequested("") {
		return []string{t.holder.ID}
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !t.stopRequested(name) && !neededBy(t.Definition, name, running) {
			ids = append(ids, running[name].ID)
		}
	}
	return ids
}

// neededBy reports whether a running container depends on this one.
func neededBy(def *taskdef.TaskDefinition, name string, running map[string]Container) bool {
	for _, d := range def.ContainerDefinitions {
		if _, runs := running[d.Name]; !runs {
			continue
		}
		for _, dep := range d.DependsOn {
			if dep.ContainerName == name {
				return true
			}
		}
	}
	return false
}
