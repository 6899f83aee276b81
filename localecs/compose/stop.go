package compose

import (
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// ToStop are the containers, by ID, that ECS's agent would ask to stop now: of
// tasks whose essential container has ended by itself, in the reverse order of
// dependsOn, so each only when those that depend on it have ended, and at last
// the one that holds the network. A task that a user stops is left to
// that user. It is for one caller, who stops them.
func (s *State) ToStop() []string {
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

// next are the task's containers that no other needs any more.
func (t *task) next() (ids []string) {
	running := map[string]Container{}
	for name, c := range t.containers {
		if !stopped(c) && !c.StartedAt.IsZero() {
			running[name] = c
		}
	}
	if len(running) == 0 && t.holder.Status == "running" && !t.wasAsked("") {
		return []string{t.holder.ID}
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !t.wasAsked(name) && !neededBy(t.Definition.Definition, name, running) {
			ids = append(ids, running[name].ID)
		}
	}
	return ids
}

// neededBy reports whether a container that runs depends on this one.
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
