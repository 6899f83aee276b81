package timeline

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestMomentsAreTheFirstOfTheirKind(t *testing.T) {
	t.Parallel()
	var m Moments
	for _, e := range []localecs.Event{
		{At: at(0), Container: "consul-client", What: "status", Value: "RUNNING"},
		{At: at(1), Container: "consul-ecs-mesh-init", What: "status", Value: "RUNNING"},
		{At: at(2), Container: "consul-ecs-mesh-init", What: "status", Value: "STOPPED"},
		{At: at(3), Container: "sidecar-proxy", What: "status", Value: "RUNNING"},
		{At: at(4), Container: "sidecar-proxy", What: "health", Value: "HEALTHY"},
		{At: at(5), Container: "api", What: "status", Value: "RUNNING"},
		{At: at(6), Container: "api", What: "health", Value: "HEALTHY"},
		{At: at(7), Container: "api", What: "health", Value: "UNHEALTHY"},
		{At: at(8), Container: "api", What: "health", Value: "HEALTHY"},
		{At: at(10), What: "desired", Value: "STOPPED"},
		{At: at(12), Container: "api", What: "status", Value: "STOPPED"},
		{At: at(13), Container: "sidecar-proxy", What: "status", Value: "STOPPED"},
		{At: at(14), Container: "consul-client", What: "status", Value: "STOPPED"},
		{At: at(15), What: "status", Value: "STOPPED"},
	} {
		m.Observe(e, "api")
	}
	want := Moments{
		started: at(0), meshInit: at(2), proxyUp: at(3), proxyHealthy: at(4), application: at(5), healthy: at(6),
		term: at(10), applicationGone: at(12), proxyGone: at(13), clientGone: at(14), stopped: at(15),
	}
	if m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestConsulCountsFromTheStopOn(t *testing.T) {
	t.Parallel()
	var m Moments
	m.ConsulChanged(at(1), false, false) // not critical by the stop: it starts like that
	m.ConsulChanged(at(2), true, true)
	m.Observe(localecs.Event{At: at(3), What: "desired", Value: "STOPPED"}, "api")
	m.ConsulChanged(at(4), false, false)
	m.ConsulChanged(at(5), false, false)
	m.LeftNothing(at(6))
	if want := (Moments{inTraffic: at(2), term: at(3), critical: at(4), nothingLeft: at(6)}); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

func TestTableShowsSecondsSinceT0(t *testing.T) {
	t.Parallel()
	rows := []Row{
		{"web", &Moments{started: at(10), meshInit: at(11), inTraffic: at(25)}},
		{"never", &Moments{}},
	}
	got := table("Start", rows, func(m *Moments) time.Time { return m.started }, []column{
		{"T1 mesh-init done", func(m *Moments) time.Time { return m.meshInit }},
		{"app healthy", func(m *Moments) time.Time { return m.healthy }},
		{"in traffic", func(m *Moments) time.Time { return m.inTraffic }},
	})
	want := "\nStart\n" +
		"  task        T1 mesh-init done  app healthy  in traffic\n" +
		"  web                      1.00            -       15.00\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
