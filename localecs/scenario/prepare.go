package scenario

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/definition"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Plan is a scenario all of whose files were read and whose programs are there.
type Plan struct {
	file    *file.Scenario
	network network.Mode
	defs    map[string]*taskdef.TaskDefinition // by file name
	images  map[string]image.Image
	// environmentFiles are their texts, by ARN.
	environmentFiles map[string]string
}

// Prepare reads every task definition and other file, and finds every program.
// The error has all that is wrong with all of them; the warnings are for people
// to read. Nothing was started or written when it returns. vars are the variables of
// image programs: consul, envoy, bin; the scenario's subnet has to fit the mode.
func Prepare(f *file.Scenario, vars map[string]string, mode network.Mode) (plan *Plan, warnings []string, err error) {
	defs, warnings, taskErr := loadTasks(f)
	images, imageErr := f.HostImages(vars)
	files, fileErr := f.EnvironmentFileTexts()
	if err := errors.Join(mode.CheckSubnet(f.Subnet), taskErr, containerProblems(f, defs), imageErr, fileErr); err != nil {
		return nil, warnings, err
	}
	return &Plan{file: f, network: mode, defs: defs, images: images, environmentFiles: files}, warnings, nil
}

// Name is the scenario's.
func (p *Plan) Name() string { return p.file.Name }

// tasks are the scenario's, none of them started.
func (p *Plan) tasks() map[string]*taskRun {
	tasks := map[string]*taskRun{}
	for name, t := range p.file.Tasks {
		def := p.defs[t.Definition]
		tasks[name] = &taskRun{def: def, service: t.Service, application: applicationOf(def)}
	}
	return tasks
}

// loadTasks reads every task definition, once each, and reports all that is
// wrong with all of them.
func loadTasks(f *file.Scenario) (defs map[string]*taskdef.TaskDefinition, warnings []string, err error) {
	roles := f.IdentityRoles()
	defs = map[string]*taskdef.TaskDefinition{}
	var errs []error
	for _, name := range definitions(f) {
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

// definitions are the files of all tasks, each once.
func definitions(f *file.Scenario) []string {
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
		def := defs[f.Tasks[task].Definition]
		if container != "" && def != nil && def.Container(container) == nil {
			errs = append(errs, fmt.Errorf("steps[%d]: task %q has no container %q", i, task, container))
		}
	}
	return errors.Join(errs...)
}

// applicationOf is the name of the container that is named like the family,
// else the last one.
func applicationOf(def *taskdef.TaskDefinition) string {
	if def.Container(def.Family) != nil {
		return def.Family
	}
	return def.ContainerDefinitions[len(def.ContainerDefinitions)-1].Name
}
