package workload_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/workload"
)

func names(containers []workload.Container) []string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}

func TestSiblingsAreAllButTheClient(t *testing.T) {
	t.Parallel()
	task := workload.Task{Containers: []workload.Container{
		{Name: "consul-ecs-install"}, {Name: "consul-client", Type: "NORMAL"}, {Name: "consul-ecs-mesh-init", Type: "NORMAL"},
		{Name: "sidecar-proxy"}, {Name: "app"}, {Name: "log-router"}, {Name: "consul-ecs-health-sync"},
		{Name: "~internal~ecs~pause", Type: "CNI_PAUSE"}, {Name: "guardduty", Type: "SERVICE_CONNECT"},
	}}
	want := []string{"consul-ecs-install", "consul-ecs-mesh-init", "sidecar-proxy", "app", "consul-ecs-health-sync"}
	if d := cmp.Diff(want, names(task.Siblings([]string{"log-router", "absent"}))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got := (workload.Task{}).Siblings(nil); got != nil {
		t.Errorf("siblings of an empty task: %v", got)
	}
}

func TestRunningNamesWhatHasNotStopped(t *testing.T) {
	t.Parallel()
	got := workload.Running([]workload.Container{
		{Name: "web", DesiredStatus: "STOPPED", KnownStatus: "RUNNING"},
		{Name: "done", DesiredStatus: "STOPPED", KnownStatus: "STOPPED"},
		{Name: "api", DesiredStatus: "RUNNING", KnownStatus: "RUNNING"},
		{Name: "unknown"},
	})
	if want := []string{"api", "unknown", "web"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := workload.Running(nil); got != nil {
		t.Errorf("none of none: %v", got)
	}
}

// The logout of the service token comes before the agent leaves, and the agent
// has time for its leave and its own logout.
func TestTheEndOfATaskIsInOrder(t *testing.T) {
	t.Parallel()
	logOut, leave := workload.DefaultStopTimeout-workload.LogOutReserve, workload.DefaultStopTimeout-workload.LeaveReserve
	if logOut != 18*time.Second || leave != 20*time.Second {
		t.Errorf("log-out after %s, leave after %s", logOut, leave)
	}
}

func TestRestartable(t *testing.T) {
	t.Parallel()
	task, err := workload.ParseTask([]byte(`{"TaskARN":"` + fargateARN + `","Containers":[
		{"Name":"consul-client","RestartCount":0},{"Name":"web"},{"Name":"log","RestartCount":3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"consul-client": true, "log": true, "web": false, "none": false} {
		if got := task.Restartable(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	task := workload.Task{Containers: []workload.Container{
		{Name: "ended", DesiredStatus: "STOPPED", KnownStatus: "STOPPED"},
		{Name: "stopping", DesiredStatus: "STOPPED", KnownStatus: "RUNNING"},
		{Name: "may be restarted", DesiredStatus: "RUNNING", KnownStatus: "STOPPED"},
	}}
	for name, want := range map[string]bool{"ended": true, "stopping": false, "may be restarted": false, "not listed": false} {
		if got := task.Ended(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
