package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/textfile"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// maxBytes is far more than ECS takes of an environment file.
const maxBytes = 1 << 20

// users are the containers of each image, as people call them.
func (p *PlainPlan) users() map[string][]string {
	users := map[string][]string{}
	for _, t := range p.tasks {
		for _, c := range t.def.ContainerDefinitions {
			users[c.Image] = append(users[c.Image], p.called(t, c.Name))
		}
	}
	return users
}

// called is a container's name, after that of its task where there are several.
func (p *PlainPlan) called(t plainTask, container string) string {
	if len(p.tasks) == 1 {
		return container
	}
	return t.name + "/" + container
}

// findImages finds what the images are made of. A flag about an image that nobody
// uses is perhaps a typing error.
func (p *PlainPlan) findImages(s Sources) (warnings []string, err error) {
	users := p.users()
	wanted := *p.setting
	wanted.Images = map[string]*file.Image{}
	for name, i := range p.setting.Images {
		if users[name] != nil {
			wanted.Images[name] = i
		}
	}
	images, err := wanted.HostImages(s.Vars)
	errs := []error{err}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		if s.EngineImages && !s.Images.Knows(name) && p.setting.Images[name] == nil {
			continue // the engine's
		}
		i, err := s.Images.Image(name, images[name])
		images[name] = i
		errs = append(errs, err)
	}
	for _, name := range s.Images.Names() {
		if users[name] == nil {
			warnings = append(warnings, fmt.Sprintf("no container is of the image %s: the definitions have %s", name, strings.Join(slices.Sorted(maps.Keys(users)), ", ")))
		}
	}
	p.images = images
	return warnings, errors.Join(errs...)
}

// findFiles reads the environment files.
func (p *PlainPlan) findFiles(s Sources) error {
	texts, err := p.setting.EnvironmentFileTexts()
	errs := []error{err}
	for _, arn := range slices.Sorted(maps.Keys(s.EnvironmentFiles)) {
		data, err := textfile.Read(s.EnvironmentFiles[arn], maxBytes)
		if err != nil {
			errs = append(errs, fmt.Errorf("-environment-file %s: %w", arn, err))
		}
		texts[arn] = string(data)
	}
	p.environmentFiles = texts
	return errors.Join(errs...)
}

// missing is everything that the tasks need and nobody has given, with the flag
// for each.
func (p *PlainPlan) missing(s Sources) error {
	var errs []error
	n := &needs{}
	if !s.EngineImages {
		p.missingImages(s, n)
	}
	for _, t := range p.tasks {
		for _, c := range t.def.ContainerDefinitions {
			errs = append(errs, p.missingOf(n, t, c))
		}
	}
	return errors.Join(append(errs, n.error())...)
}

// missingImages notes images without programs, and containers without a command.
func (p *PlainPlan) missingImages(s Sources, n *needs) {
	idle := map[string][]string{} // containers that run what the image says, by image
	for _, t := range p.tasks {
		for _, c := range t.def.ContainerDefinitions {
			if len(p.images[c.Image].Argv(c.EntryPoint, c.Command)) == 0 {
				idle[c.Image] = append(idle[c.Image], p.called(t, c.Name))
			}
		}
	}
	users := p.users()
	for _, name := range slices.Sorted(maps.Keys(users)) {
		known := s.Images.Knows(name) || p.setting.Images[name] != nil
		switch {
		case !known && idle[name] != nil:
			n.add("-image", name, "PROGRAM,"+Host, "programs for "+strings.Join(users[name], ", ")+"; "+strings.Join(idle[name], ", ")+" runs the first one, as the definition leaves that to the image")
		case !known:
			n.add("-image", name, Host, "programs for "+strings.Join(users[name], ", "))
		case idle[name] != nil:
			n.add("-cmd", name, "PROGRAM ARGUMENT...", "what "+strings.Join(idle[name], ", ")+" runs, as the definition leaves that to the image")
		}
	}
}

// missingOf notes what a container's variables lack. An error is about a value that
// is there and does not fit.
func (p *PlainPlan) missingOf(n *needs, t plainTask, c taskdef.Container) error {
	var errs []error
	for _, f := range c.EnvironmentFiles {
		if _, ok := p.environmentFiles[f.Value]; !ok {
			n.add("-environment-file", f.Value, "FILE", "variables of "+p.called(t, c.Name))
		}
	}
	for _, secret := range c.Secrets {
		_, err := cluster.Secret(secret.ValueFrom, func(name string) (string, bool) {
			value, ok := p.setting.Secrets[name]
			return value, ok
		})
		absent, is := errors.AsType[*cluster.NoValueError](err)
		switch {
		case is:
			n.secret(absent.Name, jsonKey(secret.ValueFrom), p.called(t, c.Name)+"'s "+secret.Name)
		case err != nil:
			errs = append(errs, fmt.Errorf("task definition %s: container %s, secret %s: %w", t.path, c.Name, secret.Name, err))
		}
	}
	return errors.Join(errs...)
}

// jsonKey is what a valueFrom takes out of a secret; empty for all of it.
func jsonKey(valueFrom string) string {
	if parts := strings.Split(valueFrom, ":"); len(parts) == 10 {
		return parts[7]
	}
	return ""
}
