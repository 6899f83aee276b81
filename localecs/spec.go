package localecs

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// spec is a container of the task definition as the runtime wants it.
func (t *Task) spec(name string) runtime.Spec {
	c := *t.def.Container(name)            // the scheduler knows no other names
	i := t.cluster.options.Images[c.Image] // known since its pull
	s := runtime.Spec{
		Name:         t.name + "/" + name,
		Image:        i,
		Args:         i.Argv(c.EntryPoint, c.Command),
		Env:          t.env[name],
		WorkingDir:   c.WorkingDirectory,
		User:         c.User,
		ReadOnlyRoot: isTrue(c.ReadonlyRootFilesystem),
		InitProcess:  c.LinuxParameters != nil && isTrue(c.LinuxParameters.InitProcessEnabled),
		Hostname:     t.ns.PrivateDNSName,
		Hosts:        t.ns.Hosts(),
		ResolvConf:   t.ns.ResolvConf(),
		NetNS:        t.ns.File(),
		PIDs:         t.pids,
		Budget:       t.budget,
		Memory:       mebibytes(int(t.facts.Containers[name].Memory)),
		Stdout:       t.logs[name],
		Stderr:       t.logs[name],
	}
	s.Mounts = t.mounts(c)
	s.Ulimits = ulimits(c)
	return s
}

// mounts are the container's mount points, and before them those of the
// containers it takes volumes from: at one path its own win.
func (t *Task) mounts(c taskdef.Container) []runtime.Mount {
	var mounts []runtime.Mount
	for _, from := range c.VolumesFrom {
		for _, m := range t.mounts(*t.def.Container(from.SourceContainer)) {
			m.ReadOnly = m.ReadOnly || isTrue(from.ReadOnly)
			mounts = append(mounts, m)
		}
	}
	for _, m := range c.MountPoints {
		mounts = append(mounts, runtime.Mount{Source: t.volumes[m.SourceVolume], Target: m.ContainerPath, ReadOnly: isTrue(m.ReadOnly)})
	}
	return mounts
}

func isTrue(p *bool) bool { return p != nil && *p }

// defaultNofile is Fargate's limit of open files.
const defaultNofile = 65535

func ulimits(c taskdef.Container) []runtime.Ulimit {
	limits := []runtime.Ulimit{{Name: "nofile", Soft: defaultNofile, Hard: defaultNofile}}
	for _, u := range c.Ulimits {
		if u.Name == "nofile" {
			limits = limits[1:]
		}
		limits = append(limits, runtime.Ulimit{Name: u.Name, Soft: uint64(u.SoftLimit), Hard: uint64(u.HardLimit)})
	}
	return limits
}

// probe runs the container's health check and reports its result.
func (t *Task) probe(p scheduler.Probe) {
	done := scheduler.ProbeDone{Container: p.Container, StartedAt: time.Now()}
	if c := t.container(p.Container); c != nil {
		result := c.Exec(context.Background(), runtime.ExecSpec{
			Argv: probeCommand(t.def.Container(p.Container).HealthCheck.Command), Timeout: p.Timeout,
		})
		done.Code, done.Output, done.TimedOut = result.Code, result.Output, result.TimedOut
	}
	done.At = time.Now()
	t.send(done)
}

// probeCommand is the argument vector of a health check: CMD runs the words,
// CMD-SHELL one line in a shell, anything else is a bare vector.
func probeCommand(command []string) []string {
	switch command[0] {
	case "CMD":
		return command[1:]
	case "CMD-SHELL":
		return runtime.Shell(command[1]).Argv
	default:
		return command
	}
}
