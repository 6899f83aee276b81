package controlplane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// keepStopped is how long a stopped task stays visible.
const keepStopped = time.Hour

// Report says how a task is now.
type Report struct {
	View scheduler.View
	// Network is nil until the task has an interface.
	Network *Network
	// Containers are by name; what is not known yet is empty.
	Containers map[string]ContainerFacts
	// Gone says that the task is STOPPED and nothing of it is left.
	Gone bool
}

// Network is a task's interface.
type Network struct{ IP, MAC, PrivateDNSName string }

// ContainerFacts are what a launcher calls a container.
type ContainerFacts struct{ RuntimeID, ImageDigest string }

// Record is one task.
type Record struct {
	// Number counts tasks in the order of their creation.
	Number int
	// ID is the last part of the ARN.
	ID string
	// Service is empty for a standalone task.
	Cluster, Service, Family string
	// Task is complete but for what Shape adds: containers, the interface, tags.
	Task shapes.Task
	Tags []shapes.Tag
	// Definition has the overrides in it.
	Definition *taskdef.TaskDefinition
	// ContainerARNs are by name.
	ContainerARNs       map[string]string
	InterfaceID, Subnet string
	Created             time.Time

	report   Report
	attached time.Time // the interface
	stopping time.Time // desired STOPPED
	gone     time.Time // last status STOPPED
}

// Key sorts records by creation.
func (r *Record) Key() string { return fmt.Sprintf("%012d", r.Number) }

// Visible reports whether a call at now still finds the task.
func (r *Record) Visible(now time.Time) bool {
	return r.gone.IsZero() || now.Sub(r.gone) < keepStopped
}

// Is reports whether there is a task that a call at now finds in a cluster, or in
// any when it names none.
func (r *Record) Is(cluster string, now time.Time) bool {
	return r != nil && r.Visible(now) && (cluster == "" || cluster == r.Cluster)
}

// Apply takes a report over, and reports whether it makes a new version: the last
// or the desired status has changed. What
// happens to the interface does not.
func (r *Record) Apply(report Report, now time.Time) (changed bool) {
	r.report = report
	if report.Network != nil && r.attached.IsZero() {
		r.attached = now
		r.Task.Connectivity, r.Task.ConnectivityAt = "CONNECTED", shapes.At(now)
	}
	v, t := report.View, &r.Task
	last, desired := t.LastStatus, t.DesiredStatus
	t.PullStartedAt, t.PullStoppedAt = shapes.At(v.PullStartedAt), shapes.At(v.PullStoppedAt)
	t.StartedAt, t.ExecutionStoppedAt = shapes.At(v.StartedAt), shapes.At(v.ExecutionStoppedAt)
	t.HealthStatus = v.HealthStatus()
	if v.DesiredStatus == scheduler.StatusStopped {
		r.Stop(v.StopCode, v.StoppedReason, orNow(v.StoppingAt, now))
	}
	t.LastStatus = lastStatus(report)
	if report.Gone && r.gone.IsZero() {
		r.gone = now
		t.StoppedAt = shapes.At(now)
	}
	if last == t.LastStatus && desired == t.DesiredStatus {
		return false
	}
	t.Version++
	return true
}

// Stop makes the desired status STOPPED. Only the first word counts.
func (r *Record) Stop(code, reason string, at time.Time) {
	if r.Task.DesiredStatus == shapes.Stopped {
		return
	}
	r.Task.DesiredStatus, r.Task.StopCode, r.Task.StoppedReason = shapes.Stopped, code, reason
	r.Task.StoppingAt = shapes.At(at)
	r.stopping = at
}

func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

// lastStatus is the task's, of what its launcher says. The order is that of
// events of Fargate, which has ACTIVATING, DEACTIVATING and STOPPING only for
// what has to be registered elsewhere.
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

// Shape is the task as an answer at now shows it, tags only when asked for.
func (r *Record) Shape(now time.Time, lag Lag, tags bool) shapes.Task {
	t := r.Task
	t.Tags = []shapes.Tag{}
	if tags && now.Sub(r.Created) >= lag.Tags {
		t.Tags = append(t.Tags, r.Tags...)
	}
	network := r.report.Network
	if network != nil && now.Sub(r.attached) < lag.Interface {
		network = nil
	}
	t.Attachments = []shapes.Attachment{r.attachment(network)}
	t.Containers = nil
	for i := range r.Definition.ContainerDefinitions {
		t.Containers = append(t.Containers, r.container(&r.Definition.ContainerDefinitions[i], network))
	}
	return t
}

// attachment is the task's interface; network is what is known of it.
func (r *Record) attachment(network *Network) shapes.Attachment {
	a := shapes.Attachment{ID: r.InterfaceID, Type: "ElasticNetworkInterface", Status: "PRECREATED", Details: []shapes.NameValue{{Name: "subnetId", Value: r.Subnet}}}
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

// container is one container of the task.
func (r *Record) container(c *taskdef.Container, network *Network) shapes.Container {
	shape := shapes.Container{
		ContainerARN: r.ContainerARNs[c.Name], TaskARN: r.Task.TaskARN, Name: c.Name, Image: c.Image,
		LastStatus: shapes.Pending, NetworkInterfaces: []shapes.NetworkInterface{},
		CPU: decimal(c.CPU), Memory: decimal(c.Memory), MemoryReservation: decimal(c.MemoryReservation),
	}
	if network != nil {
		shape.NetworkInterfaces = append(shape.NetworkInterfaces, shapes.NetworkInterface{AttachmentID: r.InterfaceID, IPv4: network.IP})
	}
	facts := r.report.Containers[c.Name]
	shape.RuntimeID = facts.RuntimeID
	i := slices.IndexFunc(r.report.View.Containers, func(v scheduler.ContainerView) bool { return v.Name == c.Name })
	if i < 0 {
		return shape
	}
	v := r.report.View.Containers[i]
	shape.LastStatus, shape.ExitCode, shape.Reason, shape.HealthStatus = v.LastStatus(), v.ExitCode, v.Reason, v.HealthStatus()
	if !r.report.View.PullStoppedAt.IsZero() && !strings.HasPrefix(v.Reason, scheduler.CannotPull) {
		shape.ImageDigest = facts.ImageDigest
	}
	return shape
}

// number is a decimal, empty for what is not set.
func decimal(p *int) string {
	if p == nil {
		return ""
	}
	return strconv.Itoa(*p)
}

// Matches applies the filters but the status.
func (r *Record) Matches(in shapes.ListTasksInput) bool {
	return (in.Family == "" || in.Family == r.Family) &&
		(in.StartedBy == "" || in.StartedBy == r.Task.StartedBy) &&
		(in.ServiceName == "" || in.ServiceName == r.Service) &&
		(in.LaunchType == "" || in.LaunchType == r.Task.LaunchType)
}

// Listed is the desired status that a list from at says the task has; empty for
// a task that it does not know.
func (r *Record) Listed(at, now time.Time) string {
	switch {
	case r.Created.After(at), !r.Visible(now):
		return ""
	case r.stopping.IsZero(), r.stopping.After(at):
		return shapes.Running
	}
	return shapes.Stopped
}
