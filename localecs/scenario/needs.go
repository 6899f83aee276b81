package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// users returns the containers of each image.
func (d *definitions) users() map[string][]string {
	users := map[string][]string{}
	for _, task := range d.plan.alone {
		for _, c := range d.plan.defs.Tasks[task].ContainerDefinitions {
			users[c.Image] = append(users[c.Image], d.plan.called(task, c.Name))
		}
	}
	return users
}

// findImages finds the programs of the images. A flag about an image that no
// container uses may be a typing error.
func (d *definitions) findImages() (warnings []string, err error) {
	users := d.users()
	wanted := *d.plan.file
	wanted.Images = map[string]*file.Image{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(users)) {
		switch i := d.sources.Images.image(name, d.plan.file.Image(name)); {
		case i == nil:
		case d.sources.EngineImages && !d.defines(name):
			errs = append(errs, fmt.Errorf("-entrypoint and -cmd of %s: the image is the engine's, unless -image has "+
				"its programs", name))
		default:
			wanted.Images[name] = i
		}
	}
	d.plan.images, err = wanted.HostImages(d.sources.Vars)
	for _, name := range d.sources.Images.names() {
		if users[name] == nil {
			warnings = append(warnings,
				fmt.Sprintf("no container is of the image %s: the definitions have %s", name,
					strings.Join(slices.Sorted(maps.Keys(users)), ", ")))
		}
	}
	return warnings, errors.Join(append(errs, err)...)
}

// defines reports whether flags or file have programs for an image.
func (d *definitions) defines(image string) bool {
	return d.sources.Images.knows(image) || d.plan.file.Image(image) != nil
}

// missing returns an error with everything that the tasks need and was not given,
// with the flag for each.
func (d *definitions) missing() error {
	var errs []error
	n := &needs{}
	if !d.sources.EngineImages {
		d.missingImages(n)
	}
	for _, task := range d.plan.alone {
		for _, c := range d.plan.defs.Tasks[task].ContainerDefinitions {
			errs = append(errs, d.missingOf(n, task, c))
		}
	}
	return errors.Join(append(errs, n.error())...)
}

// missingImages collects images without programs, and containers without a command.
func (d *definitions) missingImages(n *needs) {
	idle := map[string][]string{} // containers without a command, by image
	for _, task := range d.plan.alone {
		for _, c := range d.plan.defs.Tasks[task].ContainerDefinitions {
			if len(d.plan.images[c.Image].Argv(c.EntryPoint, c.Command)) == 0 {
				idle[c.Image] = append(idle[c.Image], d.plan.called(task, c.Name))
			}
		}
	}
	users := d.users()
	for _, name := range slices.Sorted(maps.Keys(users)) {
		switch {
		case !d.defines(name) && idle[name] != nil:
			n.add("-image", name, "PROGRAM,"+file.Host,
				"programs for "+strings.Join(users[name], ", ")+"; "+strings.Join(idle[name], ", ")+
					" runs the first one, as the definition leaves that to the image")
		case !d.defines(name):
			n.add("-image", name, file.Host, "programs for "+strings.Join(users[name], ", "))
		case idle[name] != nil:
			n.add("-cmd", name, "PROGRAM ARGUMENT...",
				"what "+strings.Join(idle[name], ", ")+" runs, as the definition leaves that to the image")
		}
	}
}

// missingOf collects what a container's variables lack. The error is about a value
// that was given and does not fit.
func (d *definitions) missingOf(n *needs, task string, c taskdef.Container) error {
	var errs []error
	for _, f := range c.EnvironmentFiles {
		if _, ok := d.plan.environmentFiles[f.Value]; !ok {
			n.add("-environment-file", f.Value, "FILE", "variables of "+d.plan.called(task, c.Name))
		}
	}
	for _, secret := range c.Secrets {
		_, err := cluster.Secret(secret.ValueFrom, func(name string) (string, bool) {
			value, ok := d.plan.secrets[name]
			return value, ok
		})
		absent, ok := errors.AsType[*cluster.NoValueError](err)
		switch {
		case ok:
			n.secret(absent.Name, absent.Key, d.plan.called(task, c.Name)+"'s "+secret.Name)
		case err != nil:
			errs = append(errs, fmt.Errorf("task definition %s: container %s, secret %s: %w",
				d.plan.file.Tasks[task].Definition, c.Name, secret.Name, err))
		}
	}
	return errors.Join(errs...)
}

// needs are the missing values, in the order of discovery.
type needs struct{ list []need }

// need is one of them: its flag, and what needs it.
type need struct {
	flag, name, value string
	keys              []string // of a secret
	why               []string
}

func (n *needs) add(flag, name, value, why string) {
	for i, old := range n.list {
		if old.flag == flag && old.name == name {
			n.list[i].why = append(old.why, why)
			return
		}
	}
	n.list = append(n.list, need{flag: flag, name: name, value: value, why: []string{why}})
}

// secret adds a secret, of which a key is asked for, or all.
func (n *needs) secret(name, key, why string) {
	n.add("-secret", name, "VALUE", why)
	for i, of := range n.list {
		if of.flag == "-secret" && of.name == name && key != "" && !slices.Contains(of.keys, key) {
			n.list[i].keys = append(of.keys, key)
		}
	}
}

// error names all of them with their flags, as a shell takes them.
func (n *needs) error() error {
	if len(n.list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("this is missing; add these flags, or the same in " + SettingName + " beside the definition:")
	for _, of := range n.list {
		value := of.value
		if len(of.keys) > 0 {
			value = object(of.keys)
		}
		fmt.Fprintf(&b, "\n  %s '%s=%s'\n      %s", of.flag, of.name, value, strings.Join(of.why, "; "))
	}
	if slices.ContainsFunc(n.list, func(of need) bool { return of.flag == "-image" }) {
		b.WriteString("\nPROGRAM is a name on PATH or a path of this machine, host is all that it has installed; " +
			"-image '*=host' is for all images")
	}
	return errors.New(b.String())
}

// object returns a JSON object with these keys.
func object(keys []string) string {
	values := map[string]string{}
	for _, k := range keys {
		values[k] = "VALUE"
	}
	text, _ := json.Marshal(values) // strings can be encoded
	return string(text)
}
