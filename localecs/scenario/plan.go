package scenario

import (
	"errors"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Plan is a scenario, or task definitions without one, of which all files were read
// and all programs were found.
type Plan struct {
	file    *file.Scenario
	network network.Mode
	defs    file.Definitions
	images  runtime.Images
	roles   []iam.Role
	// secrets are their values.
	secrets map[string]string
	// environmentFiles are their contents, by ARN.
	environmentFiles map[string]string
	// alone has the tasks of a run without a Consul server, in the order of their
	// start: they run until all have ended. It is nil for a scenario.
	alone []string
	// published are the ports of this machine that lead to tasks.
	published []file.Published
	// outside are the addresses that tasks may reach outside of the run.
	outside []file.Outside
}

// Prepare reads every task definition and other file, and finds every program.
// The error has all mistakes. Nothing was started or written when it returns. vars
// are the variables of image programs: consul, envoy, bin. The scenario's subnet has
// to fit the mode.
func Prepare(f *file.Scenario, vars map[string]string, mode network.Mode) (plan *Plan, warnings []string, err error) {
	defs, warnings, taskErr := file.Read(f)
	faultErr := errors.Join(f.FaultProblems(defs.Containers(), mode == network.Host)...)
	images, imageErr := f.HostImages(vars)
	secrets, secretErr := f.SecretTexts()
	files, fileErr := f.EnvironmentFileTexts()
	plan = &Plan{file: f, network: mode, defs: defs, images: images, roles: f.IdentityRoles(), secrets: secrets,
		environmentFiles: files}
	err = errors.Join(mode.CheckSubnet(f.Subnet), taskErr, faultErr, imageErr, secretErr, fileErr, plan.connect())
	if err != nil {
		return nil, warnings, err
	}
	return plan, warnings, nil
}

// MissingImages returns warnings about images that the scenario does not have.
func (p *Plan) MissingImages() []string { return p.defs.MissingImages(p.file) }

// Name returns the scenario's name, or the names of the tasks that run alone.
func (p *Plan) Name() string { return p.file.Name }

// called returns the name of a container for users, after its task's where there
// are several tasks.
func (p *Plan) called(task, container string) string {
	if len(p.defs.Tasks) == 1 && p.defs.Tasks[task] != nil { // else a container has started it
		return container
	}
	return task + "/" + container
}

// taskSet returns the plan's tasks, none of which has started.
func (p *Plan) taskSet() *TaskSet {
	all := NewTaskSet()
	for name := range p.file.Tasks {
		all.Add(Task{Name: name, Definition: p.defs.Tasks[name]})
	}
	return all
}
