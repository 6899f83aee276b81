package scenario

import (
	"errors"

	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Plan is a scenario all of whose files were read and whose programs are there.
type Plan struct {
	file    *file.Scenario
	network network.Mode
	defs    file.Definitions
	images  map[string]runtime.Image
	// environmentFiles are their texts, by ARN.
	environmentFiles map[string]string
}

// Prepare reads every task definition and other file, and finds every program.
// The error has all that is wrong with all of them; the warnings are for people
// to read. Nothing was started or written when it returns. vars are the variables of
// image programs: consul, envoy, bin; the scenario's subnet has to fit the mode.
func Prepare(f *file.Scenario, vars map[string]string, mode network.Mode) (plan *Plan, warnings []string, err error) {
	defs, warnings, taskErr := file.Read(f)
	faultErr := errors.Join(f.FaultProblems(defs.Containers(), mode == network.Host)...)
	images, imageErr := f.HostImages(vars)
	files, fileErr := f.EnvironmentFileTexts()
	if err := errors.Join(mode.CheckSubnet(f.Subnet), taskErr, faultErr, imageErr, fileErr); err != nil {
		return nil, warnings, err
	}
	return &Plan{file: f, network: mode, defs: defs, images: images, environmentFiles: files}, warnings, nil
}

// Strangers are warnings about images that the scenario does not have.
func (p *Plan) Strangers() []string { return p.defs.Strangers(p.file) }

// Name is the scenario's.
func (p *Plan) Name() string { return p.file.Name }

// roster has the scenario's tasks, none of them begun.
func (p *Plan) roster() *Roster {
	all := NewRoster()
	for name := range p.file.Tasks {
		all.Add(Task{Name: name, Definition: p.defs.Tasks[name]})
	}
	return all
}
