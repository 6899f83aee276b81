package controlplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const keepStopped = time.Hour

// Report is the state of a task.
type Report struct {
	// Name is the launcher's name for the task, which no call shows.
	Name string
	View scheduler.View
	// Network is nil until the task has an interface.
	Network *metadata.Network
	// Containers are by name; what is not known yet is empty.
	Containers map[string]metadata.ContainerFacts
	// Gone means that the task is STOPPED and its resources are released.
	Gone bool
}

// Record is one task.
type Record struct {
	Launch
	// Number counts tasks in the order of their creation.
	Number int
	// Task is complete but for what Shape adds: containers and the interface.
	Task                shapes.Task
	InterfaceID, Subnet string

	report Report // the last one
}

// Key sorts records by creation.
func (r *Record) Key() string { return fmt.Sprintf("%012d", r.Number) }

// visible reports whether a call at now still finds the task.
func (r *Record) visible(now time.Time) bool {
	return r.Task.StoppedAt.IsZero() || now.Sub(r.Task.StoppedAt.Time) < keepStopped
}

// Is reports whether a call at now finds the task in a cluster, or in any when it
// names none. It is false for a nil Record.
func (r *Record) Is(cluster string, now time.Time) bool {
	return r != nil && r.visible(now) && (cluster == "" || cluster == r.Cluster)
}

// Apply records a report, and returns whether it makes a new version: the last or
// the desired status has changed. A change of the interface makes none.
func (r *Record) Apply(report Report, now time.Time) (changed bool) {
	r.report = report
	v, t := report.View, &r.Task
	if report.Network != nil && t.ConnectivityAt.IsZero() {
		t.Connectivity, t.ConnectivityAt = "CONNECTED", shapes.At(now)
	}
	last, desired := t.LastStatus, t.DesiredStatus
	t.PullStartedAt, t.PullStoppedAt = shapes.At(v.PullStartedAt), shapes.At(v.PullStoppedAt)
	t.StartedAt, t.ExecutionStoppedAt = shapes.At(v.StartedAt), shapes.At(v.ExecutionStoppedAt)
	t.HealthStatus = v.HealthStatus()
	if v.DesiredStatus == scheduler.StatusStopped {
		if v.StoppingAt.IsZero() {
			v.StoppingAt = now
		}
		r.Stop(v.StopCode, v.StoppedReason, v.StoppingAt)
	}
	t.LastStatus = lastStatus(report)
	if report.Gone && t.StoppedAt.IsZero() {
		t.StoppedAt = shapes.At(now)
	}
	if last == t.LastStatus && desired == t.DesiredStatus {
		return false
	}
	t.Version++
	return true
}

// Stop makes the desired status STOPPED. Only the first call has an effect.
func (r *Record) Stop(code, reason string, at time.Time) {
	if r.Task.DesiredStatus != shapes.Stopped {
		r.Task.DesiredStatus, r.Task.StopCode, r.Task.StoppedReason = shapes.Stopped, code, reason
		r.Task.StoppingAt = shapes.At(at)
	}
}

// lastStatus returns the status of the task. The order is that of Fargate's events, which have
// ACTIVATING, DEACTIVATING and STOPPING only for what is registered elsewhere.
func lastStatus(r Report) string {
	switch {
	case r.Gone:
		return shapes.Stopped
	case r.View.KnownStatus == scheduler.StatusStopped:
		return shapes.Deprovisioning
	case r.View.KnownStatus == scheduler.StatusRunning:
		return shapes.Running
	case r.Network != nil:
		return shapes.Pending
	}
	return shapes.Provisioning
}

// Shape returns the task in an answer at now, with tags if they are requested.
func (r *Record) Shape(now time.Time, lag Lag, tags bool) shapes.Task {
	t := r.Task
	t.Tags = []shapes.Tag{}
	if tags && now.Sub(t.CreatedAt.Time) >= lag.Tags {
		t.Tags = append(t.Tags, r.Task.Tags...)
	}
	network := r.report.Network
	if network != nil && now.Sub(t.ConnectivityAt.Time) < lag.Interface {
		network = nil
	}
	t.Attachments = []shapes.Attachment{r.attachment(network)}
	t.Containers = nil
	for i := range r.Definition.ContainerDefinitions {
		t.Containers = append(t.Containers, r.container(&r.Definition.ContainerDefinitions[i], network))
	}
	return t
}

func (r *Record) attachment(network *metadata.Network) shapes.Attachment {
	a := shapes.Attachment{
		ID: r.InterfaceID, Type: "ElasticNetworkInterface", Status: "PRECREATED", Details: []shapes.NameValue{
			{Name: "subnetId", Value: r.Subnet},
		},
	}
	switch {
	case r.Task.LastStatus == shapes.Stopped:
		a.Status = "DELETED"
	case r.Task.LastStatus == shapes.Deprovisioning:
		a.Status = "DETACHING"
	case network != nil:
		a.Status = "ATTACHED"
	case r.report.Network != nil:
		a.Status = "ATTACHING"
	}
	if network != nil {
		a.Details = append(a.Details,
			shapes.NameValue{Name: "networkInterfaceId", Value: "eni-" + r.ID[:17]},
			shapes.NameValue{Name: "macAddress", Value: network.MAC},
			shapes.NameValue{Name: "privateDnsName", Value: network.PrivateDNSName},
			shapes.NameValue{Name: "privateIPv4Address", Value: network.IP})
	}
	return a
}

func (r *Record) container(c *taskdef.Container, network *metadata.Network) shapes.Container {
	shape := shapes.Container{
		ContainerARN: r.ContainerARNs[c.Name], TaskARN: r.Task.TaskARN, Name: c.Name, Image: c.Image,
		LastStatus: shapes.Pending, NetworkInterfaces: []shapes.NetworkInterface{},
		CPU: decimal(c.CPU), Memory: decimal(c.Memory), MemoryReservation: decimal(c.MemoryReservation),
	}
	if network != nil {
		shape.NetworkInterfaces = append(shape.NetworkInterfaces,
			shapes.NetworkInterface{AttachmentID: r.InterfaceID, IPv4: network.IP})
	}
	facts := r.report.Containers[c.Name]
	shape.RuntimeID = facts.DockerID
	i := slices.IndexFunc(r.report.View.Containers, func(v scheduler.ContainerView) bool { return v.Name == c.Name })
	if i < 0 {
		return shape
	}
	v := r.report.View.Containers[i]
	shape.LastStatus, shape.ExitCode, shape.Reason, shape.HealthStatus = v.LastStatus(), v.ExitCode, v.Reason,
		v.HealthStatus()
	if !r.report.View.PullStoppedAt.IsZero() && !strings.HasPrefix(v.Reason, scheduler.CannotPull) {
		shape.ImageDigest = facts.ImageID
	}
	return shape
}

func decimal(p *int) string {
	if p == nil {
		return ""
	}
	return strconv.Itoa(*p)
}

// Matches applies the filters but the status.
func (r *Record) Matches(in shapes.ListTasksInput) bool {
	return (in.Family == "" || in.Family == r.Definition.Family) &&
		(in.StartedBy == "" || in.StartedBy == r.Task.StartedBy) &&
		(in.ServiceName == "" || in.ServiceName == r.Service) &&
		(in.LaunchType == "" || in.LaunchType == r.Task.LaunchType)
}

// Listed returns the desired status in a list from at; empty when the list does not have the task.
func (r *Record) Listed(at, now time.Time) string {
	switch stopping := r.Task.StoppingAt; {
	case r.Task.CreatedAt.After(at), !r.visible(now):
		return ""
	case stopping.IsZero(), stopping.After(at):
		return shapes.Running
	}
	return shapes.Stopped
}
