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

func (m Snapshot) task(v version) taskResponse {
	f := m.Facts
	t := taskResponse{
		Cluster: f.ClusterARN, TaskARN: f.TaskARN, Family: f.Family, Revision: f.Revision,
		DesiredStatus: m.View.DesiredStatus, KnownStatus: m.View.KnownStatus,
		Limits:        f.Limits,
		PullStartedAt: m.View.PullStartedAt.UTC(), PullStoppedAt: m.View.PullStoppedAt.UTC(),
		ExecutionStoppedAt: m.View.ExecutionStoppedAt.UTC(),
		AvailabilityZone:   f.AvailabilityZone,
		Containers:         m.containers(v),
	}
	if v == v3 {
		return t
	}
	t.LaunchType = shapes.Fargate
	t.FaultInjectionEnabled = &f.FaultInjection
	t.EphemeralStorage = m.Storage
	if m.Clock != nil {
		c := *m.Clock
		c.ReferenceTimestamp = c.ReferenceTimestamp.UTC().Truncate(time.Second)
		t.ClockDrift = &c
	}
	return t
}

func (m Snapshot) containers(v version) []containerResponse {
	all := make([]containerResponse, 0, len(m.View.Containers))
	for _, c := range m.View.Containers {
		if f, ok := m.Facts.Containers[c.Name]; ok {
			all = append(all, m.container(c, f, v))
		}
	}
	return all
}

func (m Snapshot) container(c scheduler.ContainerView, f ContainerFacts, v version) containerResponse {
	r := containerResponse{
		DockerID: f.DockerID, Name: c.Name, DockerName: c.Name,
		Image: c.Image, ImageID: f.ImageID, Ports: f.Ports,
		Labels:        m.labels(c.Name, f.Labels),
		DesiredStatus: c.DesiredStatus, KnownStatus: c.KnownStatus, ExitCode: c.ExitCode,
		CreatedAt: c.StartedAt.UTC(), // as on Fargate
		StartedAt: c.StartedAt.UTC(), FinishedAt: c.FinishedAt.UTC(),
		Limits: containerLimits{CPU: max(f.CPU, minCPU)},
		Type:   "NORMAL", Health: health(c.Health), Networks: m.networks(v),
	}
	if v == v4 {
		r.LogDriver, r.LogOptions, r.ContainerARN = f.LogDriver, f.LogOptions, f.ContainerARN
		r.RestartCount, r.Snapshotter = c.RestartCount, "overlayfs"
	}
	if c.StartedAt.IsZero() {
		r.Limits.CPU = 0
	}
	if f.Memory > 0 {
		r.Limits.Memory = &f.Memory
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

func (m Snapshot) networks(v version) []networkResponse {
	n := m.Facts.Network
	if n.IP == "" {
		return nil
	}
	r := networkResponse{NetworkMode: "awsvpc", IPv4Addresses: []string{n.IP}}
	if v == v3 {
		return []networkResponse{r}
	}
	r.AttachmentIndex = new(int)
	r.MACAddress, r.IPv4SubnetCIDRBlock, r.PrivateDNSName = n.MAC, n.CIDR, n.PrivateDNSName
	if _, bits, ok := strings.Cut(n.CIDR, "/"); ok && n.Gateway != "" {
		r.SubnetGatewayIPv4Address = n.Gateway + "/" + bits
	}
	if n.Resolver != "" {
		r.DomainNameServers = []string{n.Resolver}
	}
	if _, domain, ok := strings.Cut(n.PrivateDNSName, "."); ok {
		r.DomainNameSearchList = []string{domain}
	}
	return []networkResponse{r}
}
