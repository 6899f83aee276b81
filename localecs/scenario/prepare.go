package scenario

import (
	"errors"

	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
	"github.com/meshtask/consul-ecs/localecs/scenario/definitions"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Plan is a scenario all of whose files were read and whose programs are there.
type Plan struct {
	file    *file.Scenario
	network network.Mode
	defs    map[string]*taskdef.TaskDefinition // by task
	images  map[string]image.Image
	// environmentFiles are their texts, by ARN.
	environmentFiles map[string]string
}

// Prepare reads every task definition and other file, and finds every program.
// The error has all that is wrong with all of them; the warnings are for people
// to read. Nothing was started or written when it returns. vars are the variables of
// image programs: consul, envoy, bin; the scenario's subnet has to fit the mode.
func Prepare(f *file.Scenario, vars map[string]string, mode network.Mode) (plan *Plan, warnings []string, err error) {
	defs, warnings, taskErr := definitions.Read(f)
	images, imageErr := f.HostImages(vars)
	files, fileErr := f.EnvironmentFileTexts()
	if err := errors.Join(mode.CheckSubnet(f.Subnet), taskErr, imageErr, fileErr); err != nil {
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
		def := p.defs[name]
		tasks[name] = &taskRun{def: def, service: t.Service, application: applicationOf(def)}
	}
	return tasks
}

// applicationOf is the name of the container that is named like the family,
// else the last one.
func applicationOf(def *taskdef.TaskDefinition) string {
	if def.Container(def.Family) != nil {
		return def.Family
	}
	return def.ContainerDefinitions[len(def.ContainerDefinitions)-1].Name
}
