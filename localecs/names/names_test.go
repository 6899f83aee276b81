package names_test

import (
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/names"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

func TestNamesMeanATask(t *testing.T) {
	t.Parallel()
	n := names.New(names.Task{Private: "IP-10-42-0-4.ec2.internal", Cluster: "Shop", Name: "api-1", Family: "API", Service: "svc"})
	view := func(known, desired string, health ...string) scheduler.View {
		v := scheduler.View{KnownStatus: known, DesiredStatus: desired, Containers: []scheduler.ContainerView{{Essential: true}, {Health: &scheduler.HealthView{Status: "UNHEALTHY"}}}}
		for _, status := range health {
			v.Containers = append(v.Containers, scheduler.ContainerView{Essential: true, Health: &scheduler.HealthView{Status: status}})
		}
		return v
	}
	const private, family, own, service = "ip-10-42-0-4.ec2.internal", "api.shop.local", "api-1.shop.local", "svc.shop.local"
	for what, tt := range map[string]struct {
		view scheduler.View
		want []string
	}{
		"starting":       {view("NONE", "RUNNING"), []string{private}},
		"without checks": {view("RUNNING", "RUNNING"), []string{private, family, own, service}},
		"healthy":        {view("RUNNING", "RUNNING", "HEALTHY"), []string{private, family, own, service}},
		"undecided":      {view("RUNNING", "RUNNING", "HEALTHY", ""), []string{private, family, own}},
		"ill":            {view("RUNNING", "RUNNING", "UNHEALTHY"), []string{private, family, own}},
		"stopping":       {view("RUNNING", "STOPPED", "HEALTHY"), []string{private}},
		"stopped":        {view("STOPPED", "STOPPED"), nil},
	} {
		var got []string
		for _, name := range []string{private, family, own, service, "svc", ".shop.local", "svc.other.local"} {
			if n.Mean(name, tt.view) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
	if got := n.Shared(); !slices.Equal(got, []string{family, own, service}) {
		t.Errorf("shared: %q", got)
	}
	if alone := names.New(names.Task{Cluster: "c", Name: "a", Family: "a"}); alone.Mean("", view("RUNNING", "RUNNING")) && alone.Mean(".c.local", view("RUNNING", "RUNNING")) {
		t.Error("a task without a service has its name")
	}
}
