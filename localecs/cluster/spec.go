package cluster

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

func (t *Task) spec(name string) runtime.Spec {
	c := *t.def.Container(name) // the scheduler knows no other names
	i := t.image(name)
	s := runtime.Spec{
		Name:         t.name + "/" + name,
		Image:        i,
		Args:         i.Argv(c.EntryPoint, c.Command),
		Env:          t.env[name],
		WorkingDir:   c.WorkingDirectory,
		User:         c.User,
		ReadOnlyRoot: taskdef.Or(c.ReadonlyRootFilesystem, false),
		Hostname:     t.ns.PrivateDNSName,
		Hosts:        t.ns.Hosts(),
		ResolvConf:   t.ns.ResolvConf(),
		Memory:       mebibytes(int(t.facts.Containers[name].Memory)),
		Stdout:       t.logs[name],
		Stderr:       t.logs[name],
	}
	if l := c.LinuxParameters; l != nil {
		s.Capabilities, s.InitProcess = l.Capabilities, taskdef.Or(l.InitProcessEnabled, false)
	}
	for target, source := range t.shared {
		s.Mounts = append(s.Mounts, runtime.Mount{Source: source, Target: target, ReadOnly: s.ReadOnlyRoot})
	}
	s.Mounts = append(s.Mounts, Mounts(t.def, c, t.volumes)...)
	if trust := t.cluster.trust; trust != "" {
		s.Mounts = append(s.Mounts, runtime.Mount{Source: trust, Target: trustDir, ReadOnly: true})
	}
	s.Ulimits = Ulimits(c)
	return s
}

func (t *Task) probe(p scheduler.Probe) {
	done := scheduler.ProbeDone{Container: p.Container, StartedAt: time.Now()}
	if c := t.container(p.Container); c != nil {
		result := c.Exec(context.Background(), runtime.ExecSpec{
			Argv: Probe(t.def.Container(p.Container).HealthCheck.Command), Timeout: p.Timeout,
		})
		done.Code, done.Output, done.TimedOut = result.Code, result.Output, result.TimedOut
	}
	done.At = time.Now()
	t.send(done)
}
