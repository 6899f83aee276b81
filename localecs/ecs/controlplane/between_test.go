package controlplane_test

import (
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// hasty is a launcher that knows a task only when it has got it, and stops the
// second one while it gets the first.
type hasty struct {
	plane *controlplane.Plane
	got   []string
	stops []string
}

// Launch implements controlplane.Launcher.
func (h *hasty) Launch(l controlplane.Launch) {
	h.got = append(h.got, l.ID)
	l.Report(controlplane.Report{View: scheduler.New(l.Definition, scheduler.Options{}, planeStart).View()}, planeStart)
	if len(h.got) > 1 {
		return
	}
	listed, _ := h.plane.ListTasks(shapes.Call{Now: planeStart}, shapes.ListTasksInput{})
	for _, arn := range listed.TaskARNs {
		if idOf(arn) != l.ID {
			h.plane.StopTask(shapes.Call{Now: planeStart}, shapes.StopTaskInput{Task: arn, Reason: "early"})
		}
	}
}

// Stop implements controlplane.Launcher.
func (h *hasty) Stop(id, code, reason string) {
	if slices.Contains(h.got, id) {
		h.stops = append(h.stops, id+" "+code+" "+reason)
	}
}

// A task is listed before it is launched: who stops it then is not forgotten.
func TestStopBetweenRecordAndLaunch(t *testing.T) {
	t.Parallel()
	h := &hasty{}
	w := newPlaneFixture(t, func(o *controlplane.Options) { o.Launcher = h })
	h.plane = w.Plane
	ids := w.run(func(in *shapes.RunTaskInput) { in.Count = new(2) })
	if want := []string{ids[1] + " UserInitiated early"}; !slices.Equal(h.stops, want) {
		t.Errorf("stops %q, want %q", h.stops, want)
	}
}

func (w *planeFixture) isProtected(arn string) bool {
	_, protected := w.protections.Until(arn, planeStart)
	return protected
}

// What ends takes its protection with it.
func TestProtectionEndsWithItsTask(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	out, err := w.RunForService(w.call(), "web", planeInput(nil))
	if err != nil {
		t.Fatal(err)
	}
	arn := out.Tasks[0].TaskARN
	if _, err := w.UpdateTaskProtection(w.call(),
		shapes.TaskProtectionInput{Tasks: []string{arn}, ProtectionEnabled: new(true)}); err != nil ||
		!w.isProtected(arn) {
		t.Fatalf("not protected, %v", err)
	}
	w.start(idOf(arn))
	w.happen(idOf(arn), scheduler.StopRequested{})
	w.end(idOf(arn), 0)
	if until, _ := w.protections.Until(arn, planeStart); !until.IsZero() {
		t.Errorf("protected until %s", until)
	}
}
