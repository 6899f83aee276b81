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
		{Name: "consul-ecs-install"}, {Name: "consul-client", Type: "NORMAL"},
		{Name: "consul-ecs-mesh-init", Type: "NORMAL"},
		{Name: "sidecar-proxy"}, {Name: "app"}, {Name: "log-router"}, {Name: "consul-ecs-health-sync"},
		{Name: "~internal~ecs~pause", Type: "CNI_PAUSE"}, {Name: "daemon", Type: "MANAGED_DAEMON"},
		{Name: "ecs-service-connect-Wf9cF", Type: "NORMAL"}, {Name: "aws-guardduty-agent-x1Y2", Type: "NORMAL"},
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

func TestStopBudget(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for stop, want := range map[time.Duration]workload.StopBudget{
		30 * time.Second: {
			MinDelay: 1250 * ms, MaxDelay: 5 * time.Second,
			Criticals: 18 * time.Second, ServiceLogout: 18 * time.Second, Deregister: 23 * time.Second,
			Gateway: 6 * time.Second, HealthSync: 27 * time.Second,
			Leave: 20 * time.Second, KillAgent: 27500 * ms, ClientLogout: 29500 * ms,
		},
		120 * time.Second: {
			MinDelay: 1250 * ms, MaxDelay: 5 * time.Second,
			Criticals: 78 * time.Second, ServiceLogout: 108 * time.Second, Deregister: 113 * time.Second,
			Gateway: 6 * time.Second, HealthSync: 117 * time.Second,
			Leave: 110 * time.Second, KillAgent: 117500 * ms, ClientLogout: 119500 * ms,
		},
		10 * time.Second: {
			MinDelay: 1250 * ms, MaxDelay: 10 * time.Second / 6,
			Criticals: 6 * time.Second, Deregister: 6 * time.Second, Gateway: 10*time.Second/6 + time.Second,
			HealthSync: 9 * time.Second,
			KillAgent:  7500 * ms, ClientLogout: 9500 * ms,
		},
		2 * time.Second: {
			MinDelay: 2 * time.Second / 6, MaxDelay: 2 * time.Second / 6,
			Criticals: 1200 * ms, Deregister: 1200 * ms, Gateway: 2*time.Second/6 + time.Second, HealthSync: 1800 * ms,
			KillAgent: 1500 * ms, ClientLogout: 1900 * ms,
		},
	} {
		if d := cmp.Diff(want, workload.NewStopBudget(stop)); d != "" {
			t.Errorf("%s: -want +got:\n%s", stop, d)
		}
	}
}

func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	budget := workload.NewStopBudget(12 * time.Second)
	for text, want := range map[string]time.Duration{
		"auto": 2 * time.Second, "0": 0, "0s": 0, "1m30s": 90 * time.Second, "11.5s": 11500 * time.Millisecond,
	} {
		delay, err := workload.ParseShutdownDelay(text)
		if got := budget.Delay(delay); err != nil || got != want {
			t.Errorf("%s: %s, want %s, %v", text, got, want, err)
		}
		if again, err := workload.ParseShutdownDelay(delay.String()); err != nil || again != delay {
			t.Errorf("%s: %s is read as %+v, %v", text, delay, again, err)
		}
	}
	for _, text := range []string{"", "soon", "10", "-1s", "Auto"} {
		if delay, err := workload.ParseShutdownDelay(text); err == nil || delay != (workload.ShutdownDelay{}) {
			t.Errorf("%q: %+v, %v", text, delay, err)
		}
	}
}

// The service token is logged out before the agent leaves, the agent has time for its
// leave, and everything ends before KILL, whatever the stop timeout is.
func TestStopBudgetIsInOrder(t *testing.T) {
	t.Parallel()
	for stop := time.Second; stop <= 10*time.Minute; stop += 700 * time.Millisecond {
		b := workload.NewStopBudget(stop)
		for _, order := range [][]time.Duration{
			{0, b.MinDelay, b.MaxDelay, stop / 2},
			{0, b.ServiceLogout, b.Leave, b.KillAgent, b.ClientLogout, stop - 1},
			{0, b.Criticals, b.HealthSync, stop - 1},
			{b.ServiceLogout, b.HealthSync},
			{b.Criticals, b.Deregister, b.HealthSync},
		} {
			if !slices.IsSorted(order) {
				t.Errorf("%s: %v of %+v", stop, order, b)
			}
		}
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
	for name, want := range map[string]bool{"ended": true, "stopping": false, "may be restarted": false,
		"not listed": false} {
		if got := task.Ended(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func TestProxied(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		container workload.Container
		want      bool
	}{
		"Envoy": {workload.Container{Name: "sidecar-proxy", DesiredStatus: "STOPPED", KnownStatus: "RUNNING"},
			true},
		"dataplane": {workload.Container{Name: "consul-dataplane", KnownStatus: "RUNNING"}, true},
		"ended": {workload.Container{Name: "sidecar-proxy", DesiredStatus: "STOPPED", KnownStatus: "STOPPED"},
			false},
		"another proxy": {workload.Container{Name: "nginx", KnownStatus: "RUNNING"}, false},
	} {
		task := workload.Task{Containers: []workload.Container{{Name: "web", KnownStatus: "RUNNING"}, tt.container}}
		if got := task.Proxied(); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}
