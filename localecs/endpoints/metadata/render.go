package metadata

import (
	"maps"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// minCPU is what docker makes of a container without a CPU share.
const minCPU = 2

// version is the endpoint's version; the older one shows less.
type version int

const (
	v3 version = 3
	v4 version = 4
)

// Document is what /task of version 4 answers at this moment, for encoding/json.
func (m Moment) Document() any { return m.task(v4) }

// task renders the whole task.
func (m Moment) task(v version) taskResponse {
	f := m.Facts
	t := taskResponse{
		Cluster: f.cluster(), TaskARN: f.TaskARN, Family: f.Family, Revision: f.Revision,
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
	t.LaunchType = f.LaunchType
	t.FaultInjectionEnabled = &f.FaultInjection
	if f.LaunchType == Fargate {
		t.EphemeralStorage = m.Storage
		if m.Clock != nil {
			c := *m.Clock
			c.ReferenceTimestamp = c.ReferenceTimestamp.UTC().Truncate(time.Second)
			t.ClockDrift = &c
		}
	} else {
		t.VPCID, t.ServiceName = f.VPCID, f.ServiceName
	}
	return t
}

// containers are in the order of the task definition; on EC2 those that are
// not pulled are absent and those not created come last.
func (m Moment) containers(v version) []containerResponse {
	created := make([]containerResponse, 0, len(m.View.Containers))
	var pulled []containerResponse
	for _, c := range m.View.Containers {
		f, ok := m.Facts.Containers[c.Name]
		switch {
		case !ok:
		case m.Facts.LaunchType == Fargate || !c.CreatedAt.IsZero():
			created = append(created, m.container(c, f, v))
		case c.KnownStatus != scheduler.StatusNone:
			pulled = append(pulled, m.container(c, f, v))
		}
	}
	return append(created, pulled...)
}

// container renders one container.
func (m Moment) container(c scheduler.ContainerView, f ContainerFacts, v version) containerResponse {
	r := containerResponse{
		DockerID: f.DockerID, Name: c.Name, DockerName: f.DockerName,
		Image: c.Image, ImageID: f.ImageID, Ports: f.Ports,
		Labels:        m.labels(c.Name, f.Labels),
		DesiredStatus: c.DesiredStatus, KnownStatus: c.KnownStatus, ExitCode: c.ExitCode,
		CreatedAt: c.CreatedAt.UTC(), StartedAt: c.StartedAt.UTC(), FinishedAt: c.FinishedAt.UTC(),
		Limits: containerLimits{CPU: max(f.CPU, minCPU)},
		Type:   "NORMAL", Health: health(c.Health), Networks: m.networks(v),
	}
	if v == v4 {
		r.LogDriver, r.LogOptions, r.ContainerARN = f.LogDriver, f.LogOptions, f.ContainerARN
		r.RestartCount = c.RestartCount
	}
	if m.Facts.LaunchType == Fargate {
		m.fargate(&r, c, f, v)
		return r
	}
	r.Volumes = f.Volumes
	r.Limits.Memory = &f.Memory
	if c.CreatedAt.IsZero() {
		r.DockerID, r.DockerName = "", ""
	}
	return r
}

// fargate makes what only Fargate shows so.
func (m Moment) fargate(r *containerResponse, c scheduler.ContainerView, f ContainerFacts, v version) {
	r.DockerName = c.Name
	if c.CreatedAt.IsZero() {
		r.Limits.CPU = 0
	}
	if f.Memory > 0 {
		r.Limits.Memory = &f.Memory
	}
	if v == v4 {
		r.Snapshotter = "overlayfs"
	}
}

// labels are the user's and the agent's own, which win.
func (m Moment) labels(name string, user map[string]string) map[string]string {
	l := maps.Clone(user)
	if l == nil {
		l = map[string]string{}
	}
	const prefix = "com.amazonaws.ecs."
	l[prefix+"cluster"] = m.Facts.cluster()
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

// networks is the one attachment; containers keep it after their end. The
// name server is in the Fargate form only.
func (m Moment) networks(v version) []networkResponse {
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
	if m.Facts.LaunchType == Fargate {
		if n.Resolver != "" {
			r.DomainNameServers = []string{n.Resolver}
		}
		if _, domain, ok := strings.Cut(n.PrivateDNSName, "."); ok {
			r.DomainNameSearchList = []string{domain}
		}
	}
	return []networkResponse{r}
}
