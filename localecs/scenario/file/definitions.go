package file

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Definitions are those of a scenario.
type Definitions struct {
	// Files are the files' contents, by their names in the scenario.
	Files map[string]*taskdef.TaskDefinition
	// Tasks are those of the scenario's tasks, with their commands.
	Tasks map[string]*taskdef.TaskDefinition
}

// Containers returns the names of each task's containers.
func (d Definitions) Containers() map[string][]string {
	names := map[string][]string{}
	for task, def := range d.Tasks {
		for _, c := range def.ContainerDefinitions {
			names[task] = append(names[task], c.Name)
		}
	}
	return names
}

// Read reads all definitions. The error has all mistakes in them, and in the steps
// about their containers.
func Read(f *Scenario) (d Definitions, warnings []string, err error) {
	read, warnings, readErr := readFiles(f)
	defs, err := ofTasks(f, read)
	return Definitions{read, defs}, warnings,
		errors.Join(readErr, err, containerProblems(f, defs), serviceProblems(f, read))
}

// ofTasks returns the tasks' definitions, with commands of the scenario. One that
// could not be read was reported.
func ofTasks(f *Scenario, read map[string]*taskdef.TaskDefinition) (map[string]*taskdef.TaskDefinition, error) {
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
				errs = append(errs, fmt.Errorf("tasks[%q].commands: there is no container %q in family %s", name,
					container, def.Family))
			}
		}
		defs[name] = withCommands(def, t.Commands)
	}
	return defs, errors.Join(errs...)
}

// withCommands returns a definition whose containers have these commands: the same one without any.
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
func readFiles(f *Scenario) (defs map[string]*taskdef.TaskDefinition, warnings []string, err error) {
	roles := f.IdentityRoles()
	defs = map[string]*taskdef.TaskDefinition{}
	var errs []error
	for _, name := range files(f) {
		path := filepath.Join(f.Dir, name)
		def, more, err := runtime.Load(path)
		warnings = append(warnings, more...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known := func(r iam.Role) bool { return r.ARN() == def.TaskRoleARN }
		if def.TaskRoleARN != "" && !slices.ContainsFunc(roles, known) {
			errs = append(errs, fmt.Errorf("task definition %s: taskRoleArn %s is not among the scenario's roles: "+
				"add roles: {%s: {}}, and its account", path, def.TaskRoleARN, roleName(def.TaskRoleARN)))
		}
		defs[name] = def
	}
	return defs, warnings, errors.Join(errs...)
}

// roleName returns a role as the scenario's keys have it: path and name.
func roleName(arn string) string {
	_, name, _ := strings.Cut(arn, ":role/")
	return name
}

// MissingImages returns warnings about images that the scenario does not have. An
// engine may have them.
func (d Definitions) MissingImages(f *Scenario) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		for _, c := range d.Files[name].ContainerDefinitions {
			if f.Image(c.Image) == nil {
				warnings = append(warnings,
					fmt.Sprintf("%s: container %s: image %s is not among the scenario's: its task will not start",
						filepath.Join(f.Dir, name), c.Name, c.Image))
			}
		}
	}
	for key, a := range f.added {
		if f.Image(a.Image) == nil {
			warnings = append(warnings,
				fmt.Sprintf("%s: image %s is not among the scenario's: no task that has the container will start", key,
					a.Image))
		}
	}
	return warnings
}

// files returns the files of all tasks and services, each once.
func files(f *Scenario) []string {
	names := slices.Collect(maps.Values(served(f)))
	for _, t := range f.Tasks {
		names = append(names, t.Definition)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// served returns the files that services run, by the place that names them.
func served(f *Scenario) map[string]string {
	names := map[string]string{}
	for name, service := range f.Services {
		names[fmt.Sprintf("services[%q]", name)] = service.Definition
	}
	for i, s := range f.Steps {
		if s.Deploy != nil && s.Deploy.Definition != "" {
			names[fmt.Sprintf("steps[%d]: deploy", i)] = s.Deploy.Definition
		}
	}
	return names
}

// serviceProblems reports definitions that services cannot run: theirs are tasks of
// Fargate. One that could not be read was reported.
func serviceProblems(f *Scenario, read map[string]*taskdef.TaskDefinition) error {
	var errs []error
	used := served(f)
	for _, place := range slices.Sorted(maps.Keys(used)) {
		def := read[used[place]]
		if def != nil && (def.NetworkMode != "awsvpc" || !slices.Contains(def.RequiresCompatibilities, "FARGATE")) {
			errs = append(errs, fmt.Errorf("%s: %s: a service needs networkMode awsvpc and FARGATE among "+
				"requiresCompatibilities", place, used[place]))
		}
	}
	return errors.Join(errs...)
}

// containerProblems reports steps that name a container which their task does not
// have. A definition that could not be read was reported.
func containerProblems(f *Scenario, defs map[string]*taskdef.TaskDefinition) error {
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
			errs = append(errs, fmt.Errorf("steps[%d]: container %q of task %q has no restartPolicy", i, container,
				task))
		}
	}
	return errors.Join(errs...)
}
