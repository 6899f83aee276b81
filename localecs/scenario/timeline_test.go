package scenario

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestMomentsAreTheFirstOfTheirKind(t *testing.T) {
	t.Parallel()
	var m Moments
	for _, e := range []cluster.Event{
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

func TestCriticalIsSinceConsulSendsNothing(t *testing.T) {
	t.Parallel()
	term := cluster.Event{At: at(10), What: "desired", Value: "STOPPED"}
	for _, c := range []struct {
		name string
		play func(*Moments)
		want Moments
	}{
		{"critical at its stop", func(m *Moments) {
			m.ConsulChanged(at(1), false, false) // it starts like that
			m.ConsulChanged(at(2), true, true)
			m.Observe(term, "api")
			m.ConsulChanged(at(11), false, false)
			m.ConsulChanged(at(12), false, false)
			m.LeftNothing(at(13))
		}, Moments{inTraffic: at(2), term: at(10), critical: at(11), nothingLeft: at(13)}},
		{"critical before, by itself", func(m *Moments) {
			m.ConsulChanged(at(2), true, true)
			m.ConsulChanged(at(5), false, false)
			m.Observe(term, "api")
			m.ConsulChanged(at(11), false, false)
		}, Moments{inTraffic: at(2), term: at(10), critical: at(5)}},
		{"recovered before its stop", func(m *Moments) {
			m.ConsulChanged(at(2), true, true)
			m.ConsulChanged(at(5), false, false)
			m.ConsulChanged(at(6), true, true)
			m.Observe(term, "api")
			m.ConsulChanged(at(11), false, false)
		}, Moments{inTraffic: at(2), term: at(10), critical: at(11)}},
		{"stopped before it served", func(m *Moments) {
			m.ConsulChanged(at(1), false, false)
			m.Observe(term, "api")
			m.ConsulChanged(at(11), false, false)
		}, Moments{term: at(10), critical: at(11)}},
	} {
		var m Moments
		c.play(&m)
		if m != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, m, c.want)
		}
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
