package definitions

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/definition"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Read returns the definition of each task. The error has all that is wrong with
// all of them, and with the steps about their containers; the warnings are for
// people to read.
func Read(f *file.Scenario) (defs map[string]*taskdef.TaskDefinition, warnings []string, err error) {
	read, warnings, readErr := readFiles(f)
	defs, err = ofTasks(f, read)
	return defs, warnings, errors.Join(readErr, err, containerProblems(f, defs))
}

// ofTasks are the tasks' definitions, with commands of their own. One that
// could not be read has been told of.
func ofTasks(f *file.Scenario, read map[string]*taskdef.TaskDefinition) (map[string]*taskdef.TaskDefinition, error) {
	defs := map[string]*taskdef.TaskDefinition{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.Tasks)) {
		t := f.Tasks[name]
		def := read[t.Definition]
		if def == nil {
			continue
		}
		for _, container := range slices.Sorted(maps.Keys(t.Commands)) {
			if def.Container(container) == nil {
				errs = append(errs, fmt.Errorf("tasks[%q].commands: there is no container %q in family %s", name, container, def.Family))
			}
		}
		defs[name] = withCommands(def, t.Commands)
	}
	return defs, errors.Join(errs...)
}

// withCommands is a definition whose containers have these commands: the same
// one without any.
func withCommands(def *taskdef.TaskDefinition, commands map[string][]string) *taskdef.TaskDefinition {
	if len(commands) == 0 {
		return def
	}
	changed := *def
	changed.ContainerDefinitions = slices.Clone(def.ContainerDefinitions)
	for i, c := range changed.ContainerDefinitions {
		if command, given := commands[c.Name]; given {
			changed.ContainerDefinitions[i].Command = command
		}
	}
	return &changed
}

// readFiles reads every file, once each, and reports all that
// is wrong with all of them.
func readFiles(f *file.Scenario) (defs map[string]*taskdef.TaskDefinition, warnings []string, err error) {
	roles := f.IdentityRoles()
	defs = map[string]*taskdef.TaskDefinition{}
	var errs []error
	for _, name := range files(f) {
		path := filepath.Join(f.Dir, name)
		def, more, err := definition.Load(path)
		warnings = append(warnings, more...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known := func(r identity.Role) bool { return r.ARN() == def.TaskRoleARN }
		if def.TaskRoleARN != "" && !slices.ContainsFunc(roles, known) {
			errs = append(errs, fmt.Errorf("task definition %s: taskRoleArn %s is not among the scenario's roles", path, def.TaskRoleARN))
		}
		defs[name] = def
	}
	return defs, warnings, errors.Join(errs...)
}

// files are those of all tasks, each once.
func files(f *file.Scenario) []string {
	var names []string
	for _, t := range f.Tasks {
		names = append(names, t.Definition)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// containerProblems are the steps that name a container which their task does
// not have. A definition that could not be read has been told of.
func containerProblems(f *file.Scenario, defs map[string]*taskdef.TaskDefinition) error {
	var errs []error
	for i, s := range f.Steps {
		task, container := "", ""
		switch {
		case s.Kill != nil:
			task, container = s.Kill.Task, s.Kill.Container
		case s.Await != nil:
			task, container = s.Await.Task, s.Await.Container
		}
		def := defs[task]
		if container == "" || def == nil {
			continue
		}
		switch c := def.Container(container); {
		case c == nil:
			errs = append(errs, fmt.Errorf("steps[%d]: task %q has no container %q", i, task, container))
		case s.Await != nil && s.Await.Restarts > 0 && (c.RestartPolicy == nil || !c.RestartPolicy.Enabled):
			errs = append(errs, fmt.Errorf("steps[%d]: container %q of task %q has no restartPolicy", i, container, task))
		}
	}
	return errors.Join(errs...)
}
