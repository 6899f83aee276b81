package cluster_test

import (
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

func TestNamesResolveByState(t *testing.T) {
	t.Parallel()
	n := cluster.TaskNames{Private: "IP-10-42-0-4.ec2.internal", Cluster: "Shop", Name: "api-1", Family: "API",
		Service: "svc", CloudMap: []string{"api.internal"}}
	view := func(known, desired string, health ...string) scheduler.View {
		v := scheduler.View{KnownStatus: known, DesiredStatus: desired, Containers: []scheduler.ContainerView{{Essential: true}, {Health: &scheduler.HealthView{Status: "UNHEALTHY"}}}}
		for _, status := range health {
			v.Containers = append(v.Containers, scheduler.ContainerView{Essential: true, Health: &scheduler.HealthView{Status: status}})
		}
		return v
	}
	const private, family, own, service, mapped = "ip-10-42-0-4.ec2.internal", "api.shop.local", "api-1.shop.local",
		"svc.shop.local", "api.internal"
	for what, tt := range map[string]struct {
		view scheduler.View
		want []string
	}{
		"starting":       {view("NONE", "RUNNING"), []string{private}},
		"without checks": {view("RUNNING", "RUNNING"), []string{private, family, own, service, mapped}},
		"healthy":        {view("RUNNING", "RUNNING", "HEALTHY"), []string{private, family, own, service, mapped}},
		"undecided":      {view("RUNNING", "RUNNING", "HEALTHY", ""), []string{private, family, own}},
		"ill":            {view("RUNNING", "RUNNING", "UNHEALTHY"), []string{private, family, own}},
		"stopping":       {view("RUNNING", "STOPPED", "HEALTHY"), []string{private}},
		"stopped":        {view("STOPPED", "STOPPED"), nil},
	} {
		var got []string
		for _, name := range []string{private, family, own, service, mapped, "svc", ".shop.local", "svc.other.local"} {
			if n.Matches(name, tt.view) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
	for name, want := range map[string]bool{
		family: true, own: true, service: true, mapped: true, private: false, "other.shop.local": false, "": false,
	} {
		if n.Has(name) != want {
			t.Errorf("has %q: %t", name, !want)
		}
	}
}

func TestTaskWithoutServiceHasNoServiceName(t *testing.T) {
	t.Parallel()
	alone := cluster.TaskNames{Private: "ip-10-42-0-4.ec2.internal", Cluster: "c", Name: "a", Family: "a"}
	for _, name := range []string{"", ".c.local"} {
		if alone.Has(name) || alone.Matches(name, scheduler.View{KnownStatus: "RUNNING", DesiredStatus: "RUNNING"}) {
			t.Errorf("the task has the name %q", name)
		}
	}
}
