package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

var recordStart = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return recordStart.Add(time.Duration(seconds) * time.Second) }

const id = "0123456789abcdef0123456789abcdef"

// fresh returns a record as the control plane makes it.
func fresh() *controlplane.Record {
	cpu := 64
	return &controlplane.Record{
		Number: 7, InterfaceID: "attachment", Subnet: "subnet-1",
		Launch: controlplane.Launch{
			ID: id, Cluster: "default", Service: "web",
			ContainerARNs: map[string]string{"app": "arn-of-app"},
			Definition: &taskdef.TaskDefinition{
				Family: "shop", ContainerDefinitions: []taskdef.Container{{Name: "app", Image: "app:1", CPU: &cpu}},
			},
		},
		Task: shapes.Task{
			TaskARN: "arn", LastStatus: shapes.Provisioning, DesiredStatus: shapes.Running, Version: 1, StartedBy: "me",
			LaunchType: "FARGATE",
			CreatedAt:  shapes.At(recordStart), Tags: []shapes.Tag{{Key: "a", Value: "b"}},
		},
	}
}

// report returns a task with one container, app.
func report(known, desired string, change func(*controlplane.Report)) controlplane.Report {
	r := controlplane.Report{
		View: scheduler.View{
			KnownStatus: known, DesiredStatus: desired,
			Containers: []scheduler.ContainerView{
				{Name: "app", Essential: true, KnownStatus: known, DesiredStatus: desired},
			},
		},
		Network: &metadata.Network{
			IP: "10.42.0.4", MAC: "0a:ec:0a:2a:00:04", PrivateDNSName: "ip-10-42-0-4.ec2.internal",
		},
		Containers: map[string]metadata.ContainerFacts{"app": {DockerID: "runtime", ImageID: "sha256:1"}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

// words returns a shape's statuses: version, last and desired status, interface.
func words(t shapes.Task) string {
	return fmt.Sprintf("%d %s/%s %s", t.Version, t.LastStatus, t.DesiredStatus, t.Attachments[0].Status)
}

func TestVersionsAndStatuses(t *testing.T) {
	t.Parallel()
	r := fresh()
	for i, step := range []struct {
		report  controlplane.Report
		changed bool
		want    string
	}{
		{report("NONE", "RUNNING", func(r *controlplane.Report) {
			r.Network = nil
		}), false, "1 PROVISIONING/RUNNING PRECREATED"},
		{report("NONE", "RUNNING", nil), true, "2 PENDING/RUNNING ATTACHED"},
		{report("NONE", "RUNNING", func(r *controlplane.Report) {
			r.View.PullStoppedAt = at(1)
		}), false, "2 PENDING/RUNNING ATTACHED"},
		{report("RUNNING", "RUNNING", nil), true, "3 RUNNING/RUNNING ATTACHED"},
		{report("RUNNING", "STOPPED", nil), true, "4 RUNNING/STOPPED ATTACHED"},
		{report("STOPPED", "STOPPED", nil), true, "5 DEPROVISIONING/STOPPED DETACHING"},
		{report("STOPPED", "STOPPED", func(r *controlplane.Report) {
			r.Gone = true
		}), true, "6 STOPPED/STOPPED DELETED"},
		{report("STOPPED", "STOPPED", func(r *controlplane.Report) {
			r.Gone = true
		}), false, "6 STOPPED/STOPPED DELETED"},
	} {
		if changed := r.Apply(step.report, at(i)); changed != step.changed {
			t.Errorf("step %d: changed %t", i, changed)
		}
		if got := words(r.Shape(at(i), controlplane.Lag{}, false)); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
	got := r.Shape(at(9), controlplane.Lag{}, false)
	testkit.Equal(t, "StoppedAt", got.StoppedAt, shapes.At(at(6)))
	testkit.Equal(t, "StoppingAt", got.StoppingAt, shapes.At(at(4)))
	testkit.Equal(t, "ConnectivityAt", got.ConnectivityAt, shapes.At(at(1)))
}

func TestOnlyTheFirstStopCounts(t *testing.T) {
	t.Parallel()
	r := fresh()
	r.Stop("UserInitiated", "first", at(1))
	r.Stop("Other", "second", at(2))
	r.Apply(report("RUNNING", "STOPPED", func(r *controlplane.Report) {
		r.View.StopCode, r.View.StoppedReason, r.View.StoppingAt = "Third", "third", at(3)
	}), at(3))
	s := r.Shape(at(3), controlplane.Lag{}, false)
	testkit.Equal(t, "StopCode", s.StopCode, "UserInitiated")
	testkit.Equal(t, "StoppedReason", s.StoppedReason, "first")
	testkit.Equal(t, "StoppingAt", s.StoppingAt, shapes.At(at(1)))
}

func TestAnswersAreDelayedByLag(t *testing.T) {
	t.Parallel()
	r := fresh()
	r.Apply(report("RUNNING", "RUNNING", nil), at(10))
	lag := controlplane.Lag{Interface: 5 * time.Second, Tags: 12 * time.Second}
	for _, c := range []struct {
		at, tags, details, interfaces int
		status                        string
	}{{10, 0, 1, 0, "ATTACHING"}, {12, 1, 1, 0, "ATTACHING"}, {15, 1, 5, 1, "ATTACHED"}} {
		s := r.Shape(at(c.at), lag, true)
		a := s.Attachments[0]
		testkit.Equal(t, "len(s.Tags)", len(s.Tags), c.tags)
		testkit.Equal(t, "len(a.Details)", len(a.Details), c.details)
		testkit.Equal(t, "len(s.Containers[0].NetworkInterfaces)", len(s.Containers[0].NetworkInterfaces), c.interfaces)
		testkit.Equal(t, "Status", a.Status, c.status)
	}
	if s := r.Shape(at(99), lag, false); len(s.Tags) != 0 {
		t.Errorf("tags without a request: %v", s.Tags)
	}
}

func TestContainers(t *testing.T) {
	t.Parallel()
	r := fresh()
	c := r.Shape(recordStart, controlplane.Lag{}, false).Containers[0]
	testkit.Equal(t, "before any report: LastStatus", c.LastStatus, shapes.Pending)
	testkit.Equal(t, "before any report: CPU", c.CPU, "64")
	testkit.Equal(t, "before any report: Memory", c.Memory, "")
	testkit.Equal(t, "before any report: ContainerARN", c.ContainerARN, "arn-of-app")
	testkit.Equal(t, "before any report: RuntimeID", c.RuntimeID, "")
	code := 3
	r.Apply(report("STOPPED", "STOPPED", func(r *controlplane.Report) {
		r.View.Containers[0].ExitCode, r.View.Containers[0].Reason = &code, "why"
		r.View.Containers[0].Health = &scheduler.HealthView{Status: "UNHEALTHY"}
	}), at(1))
	c = r.Shape(at(1), controlplane.Lag{}, false).Containers[0]
	testkit.Equal(t, "not pulled: ExitCode", *c.ExitCode, 3)
	testkit.Equal(t, "not pulled: Reason", c.Reason, "why")
	testkit.Equal(t, "not pulled: HealthStatus", c.HealthStatus, "UNHEALTHY")
	testkit.Equal(t, "not pulled: RuntimeID", c.RuntimeID, "runtime")
	testkit.Equal(t, "not pulled: ImageDigest", c.ImageDigest, "")
	r.Apply(report("STOPPED", "STOPPED", func(r *controlplane.Report) { r.View.PullStoppedAt = at(1) }), at(2))
	if c := r.Shape(at(2), controlplane.Lag{}, false).Containers[0]; c.ImageDigest != "sha256:1" {
		t.Errorf("pulled: %+v", c)
	}
	r.Apply(report("STOPPED", "STOPPED", func(r *controlplane.Report) {
		r.View.PullStoppedAt, r.View.Containers[0].Reason = at(1),
			"CannotPullContainerError: pull access denied for app:1"
	}), at(3))
	if c := r.Shape(at(3), controlplane.Lag{}, false).Containers[0]; c.ImageDigest != "" {
		t.Errorf("not there to be pulled: %+v", c)
	}
}

func TestListsAndVisibility(t *testing.T) {
	t.Parallel()
	r := fresh()
	r.Stop("UserInitiated", "", at(10))
	r.Apply(report("STOPPED", "STOPPED", func(r *controlplane.Report) { r.Gone = true }), at(20))
	for _, c := range []struct {
		from, now time.Time // the list is from, and asked for now
		want      string
	}{
		{at(-1), at(5), ""}, {at(0), at(5), shapes.Running}, {at(9), at(15), shapes.Running},
		{at(10), at(15), shapes.Stopped},
		{at(3619), at(3619), shapes.Stopped}, {at(3620), at(3620), ""},
	} {
		if got := r.Listed(c.from, c.now); got != c.want {
			t.Errorf("from %s: got %q, want %q", c.from, got, c.want)
		}
	}
	var none *controlplane.Record
	if !r.Is("", at(30)) || !r.Is("default", at(30)) {
		t.Error("visibility")
	}
	if r.Is("other", at(30)) || r.Is("default", at(3620)) {
		t.Error("visibility")
	}
	if none.Is("", recordStart) {
		t.Error("visibility")
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	r := fresh()
	for in, want := range map[shapes.ListTasksInput]bool{
		{}: true, {Family: "shop"}: true, {Family: "web"}: false, {StartedBy: "me"}: true, {StartedBy: "you"}: false,
		{ServiceName: "web"}: true, {ServiceName: "shop"}: false, {LaunchType: "FARGATE", Family: "shop"}: true,
		{LaunchType: "EC2"}: false,
	} {
		if got := r.Matches(in); got != want {
			t.Errorf("%+v: got %t", in, got)
		}
	}
	later := fresh()
	later.Number = 10
	if strings.Compare(r.Key(), later.Key()) >= 0 {
		t.Errorf("%s is not before %s", r.Key(), later.Key())
	}
}
