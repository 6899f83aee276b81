package controlplane

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const maxOverrides = 8192

// override returns the definition with the overrides applied: the same one when
// there are none. With onFargate Fargate's rules apply, too.
func override(def *taskdef.TaskDefinition, o shapes.Overrides, onFargate bool) (*taskdef.TaskDefinition, error) {
	if reflect.ValueOf(o).IsZero() {
		return def, nil
	}
	if text, _ := json.Marshal(o); len(text) > maxOverrides { // cannot fail: it has come out of JSON
		return nil, shapes.Invalid("Container Overrides length must be at most %d", maxOverrides)
	}
	d := *def
	d.ContainerDefinitions = slices.Clone(def.ContainerDefinitions)
	for _, c := range o.Containers {
		i := slices.IndexFunc(d.ContainerDefinitions, func(of taskdef.Container) bool { return of.Name == c.Name })
		if i < 0 {
			return nil, shapes.Invalid("Override for container named %s is not a container in the TaskDefinition.",
				c.Name)
		}
		overrideContainer(&d.ContainerDefinitions[i], c)
	}
	d.CPU, d.Memory = cmp.Or(o.CPU, d.CPU), cmp.Or(o.Memory, d.Memory)
	d.TaskRoleARN, d.ExecutionRoleARN = cmp.Or(o.TaskRoleARN, d.TaskRoleARN),
		cmp.Or(o.ExecutionRoleARN, d.ExecutionRoleARN)
	d.EphemeralStorage = cmp.Or(o.EphemeralStorage, d.EphemeralStorage)
	checked := d
	if onFargate {
		checked.RequiresCompatibilities = []string{shapes.Fargate}
	}
	if text := refusal(checked.Validate()); text != "" {
		return nil, shapes.Client("%s", text)
	}
	d.SetDefaults()
	return &d, nil
}

func overrideContainer(c *taskdef.Container, o shapes.ContainerOverride) {
	if o.Command != nil {
		c.Command = o.Command
	}
	c.Environment = slices.Clone(c.Environment)
	for _, v := range o.Environment {
		if i := slices.IndexFunc(c.Environment, func(e taskdef.KeyValue) bool { return e.Name == v.Name }); i >= 0 {
			c.Environment[i] = v
			continue
		}
		c.Environment = append(c.Environment, v)
	}
	if o.EnvironmentFiles != nil {
		c.EnvironmentFiles = o.EnvironmentFiles
	}
	if o.Resources != nil {
		c.ResourceRequirements = o.Resources
	}
	c.CPU, c.Memory = cmp.Or(o.CPU, c.CPU), cmp.Or(o.Memory, c.Memory)
	c.MemoryReservation = cmp.Or(o.MemoryReservation, c.MemoryReservation)
}

func shownOverrides(def *taskdef.TaskDefinition, o shapes.Overrides) shapes.Overrides {
	given := o.Containers
	o.Containers, o.Accelerators = []shapes.ContainerOverride{}, append([]map[string]any{}, o.Accelerators...)
	for _, c := range def.ContainerDefinitions {
		shown := shapes.ContainerOverride{Name: c.Name}
		if i := slices.IndexFunc(given, func(g shapes.ContainerOverride) bool { return g.Name == c.Name }); i >= 0 {
			shown = given[i]
		}
		o.Containers = append(o.Containers, shown)
	}
	return o
}
