package metadata

import (
	"maps"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// minCPU is what docker makes of a container without a CPU share.
const minCPU = 2

// version is the endpoint's version; the older one shows less.
type version int

const (
	v3 version = 3
	v4 version = 4
)

// Document returns what /task of version 4 answers at this moment, for encoding/json.
func (m Snapshot) Document() any { return m.task(v4) }

func (m Snapshot) task(v version) any {
	f := m.Facts
	t := taskV3{
		Cluster: f.ClusterARN, TaskARN: f.TaskARN, Family: f.Family, Revision: f.Revision,
		DesiredStatus: m.View.DesiredStatus, KnownStatus: m.View.KnownStatus,
		Limits:        f.Limits,
		PullStartedAt: m.View.PullStartedAt.UTC(), PullStoppedAt: m.View.PullStoppedAt.UTC(),
		ExecutionStoppedAt: m.View.ExecutionStoppedAt.UTC(),
		AvailabilityZone:   f.AvailabilityZone,
	}
	if v == v3 {
		t.Containers = containers(m, m.containerV3)
		return t
	}
	t.LaunchType = shapes.Fargate
	of4 := taskV4{
		taskV3: t, Containers: containers(m, m.containerV4),
		EphemeralStorage: m.Storage, FaultInjectionEnabled: f.FaultInjection,
	}
	if m.Clock != nil {
		c := *m.Clock
		c.ReferenceTimestamp = c.ReferenceTimestamp.UTC().Truncate(time.Second)
		of4.ClockDrift = &c
	}
	return of4
}

// container returns the container in the shape of the version.
func (m Snapshot) container(c scheduler.ContainerView, f ContainerFacts, v version) any {
	if v == v3 {
		return m.containerV3(c, f)
	}
	return m.containerV4(c, f)
}

func containers[T any](m Snapshot, render func(scheduler.ContainerView, ContainerFacts) T) (all []T) {
	for _, c := range m.View.Containers {
		if f, ok := m.Facts.Containers[c.Name]; ok {
			all = append(all, render(c, f))
		}
	}
	return all
}

func (m Snapshot) containerV3(c scheduler.ContainerView, f ContainerFacts) containerV3 {
	r := containerV3{
		DockerID: f.DockerID, Name: c.Name, DockerName: c.Name,
		Image: c.Image, ImageID: f.ImageID, Ports: f.Ports,
		Labels:        m.labels(c.Name, f.Labels),
		DesiredStatus: c.DesiredStatus, KnownStatus: c.KnownStatus, ExitCode: c.ExitCode,
		CreatedAt: c.StartedAt.UTC(), // as on Fargate
		StartedAt: c.StartedAt.UTC(), FinishedAt: c.FinishedAt.UTC(),
		Limits: containerLimits{CPU: max(f.CPU, minCPU), Memory: &f.Memory},
		Type:   "NORMAL", Health: health(c.Health),
	}
	if ip := m.Facts.Network.IP; ip != "" {
		r.Networks = []networkV3{{NetworkMode: "awsvpc", IPv4Addresses: []string{ip}}}
	}
	if c.StartedAt.IsZero() {
		r.Limits.CPU = 0
	}
	return r
}

func (m Snapshot) containerV4(c scheduler.ContainerView, f ContainerFacts) containerV4 {
	r := containerV4{containerV3: m.containerV3(c, f), Snapshotter: "overlayfs", RestartCount: c.RestartCount}
	r.LogDriver, r.LogOptions, r.ContainerARN = f.LogDriver, f.LogOptions, f.ContainerARN
	if f.Memory == 0 {
		r.Limits.Memory = nil // Fargate's shows none
	}
	for _, n := range r.containerV3.Networks {
		r.Networks = append(r.Networks, m.Facts.Network.v4(n))
	}
	return r
}

func (m Snapshot) labels(name string, user map[string]string) map[string]string {
	l := maps.Clone(user)
	if l == nil {
		l = map[string]string{}
	}
	const prefix = "com.amazonaws.ecs."
	l[prefix+"cluster"] = m.Facts.ClusterARN
	l[prefix+"container-name"] = name
	l[prefix+"task-arn"] = m.Facts.TaskARN
	l[prefix+"task-definition-family"] = m.Facts.Family
	l[prefix+"task-definition-version"] = m.Facts.Revision
	return l
}

func health(h *scheduler.HealthView) *healthResponse {
	switch {
	case h == nil:
		return nil
	case h.Status == scheduler.HealthStarting:
		return &healthResponse{}
	}
	return &healthResponse{Status: h.Status, Since: h.Since.UTC(), ExitCode: h.ExitCode, Output: h.Output}
}

func (n Network) v4(of3 networkV3) networkV4 {
	r := networkV4{
		networkV3: of3, MACAddress: n.MAC, IPv4SubnetCIDRBlock: n.CIDR, PrivateDNSName: n.PrivateDNSName,
	}
	if _, bits, ok := strings.Cut(n.CIDR, "/"); ok && n.Gateway != "" {
		r.SubnetGatewayIPv4Address = n.Gateway + "/" + bits
	}
	if n.Resolver != "" {
		r.DomainNameServers = []string{n.Resolver}
	}
	if _, domain, ok := strings.Cut(n.PrivateDNSName, "."); ok {
		r.DomainNameSearchList = []string{domain}
	}
	return r
}
