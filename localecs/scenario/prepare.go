package scenario

import (
	"errors"
	"fmt"
	"maps"
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
}

// Prepare reads every task definition and finds every program. The error has
// all that is wrong with all of them; the warnings are for people to read.
// Nothing was started or written when it returns. vars are the variables of
// image programs: consul, envoy, bin; the scenario's subnet has to fit the mode.
func Prepare(f *file.Scenario, vars map[string]string, mode network.Mode) (plan *Plan, warnings []string, err error) {
	defs, warnings, taskErr := loadTasks(f)
	images, imageErr := f.HostImages(vars)
	if err := errors.Join(mode.CheckSubnet(f.Subnet), taskErr, imageErr); err != nil {
		return nil, warnings, err
	}
	return &Plan{file: f, network: mode, defs: defs, images: images}, warnings, nil
}

// Name is the scenario's.
func (p *Plan) Name() string { return p.file.Name }

// tasks are the scenario's, none of them started.
func (p *Plan) tasks() map[string]*taskRun {
	tasks := map[string]*taskRun{}
	for task, name := range p.file.Tasks {
		tasks[task] = &taskRun{def: p.defs[name], application: applicationOf(p.defs[name])}
	}
	return tasks
}

// loadTasks reads every task definition, once each, and reports all that is
// wrong with all of them.
func loadTasks(f *file.Scenario) (defs map[string]*taskdef.TaskDefinition, warnings []string, err error) {
	roles := f.IdentityRoles()
	defs = map[string]*taskdef.TaskDefinition{}
	var errs []error
	for _, name := range slices.Compact(slices.Sorted(maps.Values(f.Tasks))) {
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

// applicationOf is the name of the container that is named like the family,
// else the last one.
func applicationOf(def *taskdef.TaskDefinition) string {
	if def.Container(def.Family) != nil {
		return def.Family
	}
	return def.ContainerDefinitions[len(def.ContainerDefinitions)-1].Name
}
