package controlplane

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// create makes the record of the i-th task of an order.
func (p *Plane) create(call shapes.Call, o *order, i int) *Record {
	p.sweep(call.Now)
	p.created++
	in := o.input
	r := &Record{
		Number: p.created, ID: shapes.NewID(), Cluster: o.cluster.name, Service: o.service, Family: o.def.Family,
		Definition: o.def, Tags: o.tags, ContainerARNs: map[string]string{}, InterfaceID: uuid.New().String(), Created: call.Now,
	}
	if n := in.NetworkConfiguration; n != nil && n.AWSVPC != nil {
		r.Subnet = n.AWSVPC.Subnets[0]
	}
	group := in.Group
	if group == "" {
		group = "family:" + r.Family
	}
	for _, c := range o.def.ContainerDefinitions {
		r.ContainerARNs[c.Name] = p.account.Container(r.Cluster, r.ID, uuid.New().String())
	}
	storage := 20
	if e := o.def.EphemeralStorage; e != nil {
		storage = e.SizeInGiB
	}
	r.Task = shapes.Task{
		Attributes:       []shapes.NameValue{{Name: "ecs.cpu-architecture", Value: architecture(o.def)}},
		AvailabilityZone: p.account.Region + "a", CapacityProviderName: o.provider(i),
		ClusterARN: p.account.Cluster(r.Cluster), TaskARN: p.account.Task(r.Cluster, r.ID), TaskDefinitionARN: o.revision.ARN,
		CPU: o.def.CPU, Memory: o.def.Memory, CreatedAt: shapes.At(call.Now), EnableExecuteCommand: in.EnableExecuteCommand,
		DesiredStatus: shapes.Running, LastStatus: shapes.Provisioning, Version: 1,
		Group: group, StartedBy: in.StartedBy, LaunchType: shapes.Fargate, Overrides: shownOverrides(o.def, in.Overrides),
		PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux",
		EphemeralStorage: &shapes.EphemeralStorage{SizeInGiB: storage}, FargateStorage: &shapes.EphemeralStorage{SizeInGiB: storage},
	}
	p.tasks[r.ID] = r
	p.records = append(p.records, r)
	p.observe(r.Shape(call.Now, Lag{}, false), call.Now)
	return r
}

// architecture is the one that the definition asks for.
func architecture(def *taskdef.TaskDefinition) string {
	if p := def.RuntimePlatform; p != nil && p.CPUArchitecture == "ARM64" {
		return "arm64"
	}
	return "x86_64"
}

// shownOverrides are as a task shows them: with every container.
func shownOverrides(def *taskdef.TaskDefinition, o shapes.Overrides) shapes.Overrides {
	given := o.Containers
	o.Containers, o.Accelerators = []shapes.ContainerOverride{}, []struct{}{}
	for _, c := range def.ContainerDefinitions {
		i := slices.IndexFunc(given, func(g shapes.ContainerOverride) bool { return g.Name == c.Name })
		if i < 0 {
			o.Containers = append(o.Containers, shapes.ContainerOverride{Name: c.Name})
			continue
		}
		o.Containers = append(o.Containers, given[i])
	}
	return o
}

// launch is the record's task for the launcher.
func (p *Plane) launch(r *Record, reference string) Launch {
	return Launch{
		ID: r.ID, Cluster: r.Cluster, Reference: reference, Service: r.Service, Definition: r.Definition, ContainerARNs: r.ContainerARNs,
		Report: func(report Report, now time.Time) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if report.Gone {
				p.protections.Set(r.Task.TaskARN, time.Time{}) // or it is held for ever
			}
			if r.Apply(report, now) {
				p.observe(r.Shape(now, Lag{}, false), now)
			}
		},
	}
}

// sweepPeriod is how often stopped tasks are looked through.
const sweepPeriod = time.Minute

// sweep forgets tasks that have been stopped for long, and client tokens.
func (p *Plane) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepPeriod {
		return
	}
	p.swept = now
	p.records = slices.DeleteFunc(p.records, func(r *Record) bool {
		if !r.Visible(now) {
			delete(p.tasks, r.ID)
			return true
		}
		return false
	})
	for key, t := range p.tokens {
		if now.Sub(t.at) >= clientTokenLife {
			delete(p.tokens, key)
		}
	}
}
