package cluster

import (
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Mounts returns the container's mount points, and before them those of the containers it takes volumes from: at one
// path its own win. volumes are host directories by volume name.
func Mounts(def *taskdef.TaskDefinition, c taskdef.Container, volumes map[string]string) []runtime.Mount {
	var mounts []runtime.Mount
	for _, from := range c.VolumesFrom {
		for _, m := range Mounts(def, *def.Container(from.SourceContainer), volumes) {
			m.ReadOnly = m.ReadOnly || taskdef.Or(from.ReadOnly, false)
			mounts = append(mounts, m)
		}
	}
	for _, m := range c.MountPoints {
		source, readOnly := volumes[m.SourceVolume], taskdef.Or(m.ReadOnly, false)
		mounts = append(mounts, runtime.Mount{Source: source, Target: m.ContainerPath, ReadOnly: readOnly})
	}
	return mounts
}

const defaultNofile = 65535

// Ulimits returns the container's limits, and Fargate's own where it sets none.
func Ulimits(c taskdef.Container) []runtime.Ulimit {
	limits := []runtime.Ulimit{{Name: "nofile", Soft: defaultNofile, Hard: defaultNofile}}
	for _, u := range c.Ulimits {
		if u.Name == "nofile" {
			limits = limits[1:]
		}
		limits = append(limits, runtime.Ulimit{Name: u.Name, Soft: uint64(u.SoftLimit), Hard: uint64(u.HardLimit)})
	}
	return limits
}

// Probe returns the argument vector of a health check: CMD runs the words, CMD-SHELL one line in a shell, anything else
// is a bare vector.
func Probe(command []string) []string {
	switch command[0] {
	case "CMD":
		return command[1:]
	case "CMD-SHELL":
		return runtime.Shell(command[1]).Argv
	default:
		return command
	}
}
