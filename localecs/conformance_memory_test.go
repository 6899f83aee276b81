package localecs

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/endpoints/metadata"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// limited gives a container a hard limit in MiB.
func limited(c taskdef.Container, mib int) taskdef.Container {
	c.Memory = &mib
	return c
}

// newLimited is a world on a host that can limit memory.
func newLimited(t *testing.T) *world {
	t.Helper()
	w := newTools(t, nil)
	budget, err := w.runtime.Limit("probe", 0)
	if err != nil {
		t.Fatal(err)
	}
	if budget == nil {
		testkit.Missing(t, "memory cannot be limited")
	}
	if err := budget.Close(); err != nil {
		t.Error(err)
	}
	return w
}

func TestScenario49OutOfMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task      string
		container taskdef.Container
	}{
		"the container's limit": {"1024", limited(helper("a", "eat", "512"), 128)},
		"the task's limit":      {"512", helper("a", "eat", "900")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newLimited(t).play(t, func(d *taskdef.TaskDefinition) { d.Memory = c.task }, c.container).stopped()
			a := v.Containers[0]
			if a.ExitCode == nil || *a.ExitCode != 137 || a.Reason != "OutOfMemoryError: Container killed due to memory usage" {
				t.Errorf("%+v", a)
			}
			if v.StopCode != scheduler.StopEssentialContainerExited {
				t.Errorf("stop code %s", v.StopCode)
			}
		})
	}
}

// What is killed for another reason is not out of memory.
func TestKilledContainerIsNotOutOfMemory(t *testing.T) {
	t.Parallel()
	s := newLimited(t).play(t, nil, limited(deaf("a", 2), 128))
	s.until("running", func(v scheduler.View) bool { return v.KnownStatus == scheduler.StatusRunning })
	if a := s.end().stopped().Containers[0]; a.ExitCode == nil || *a.ExitCode != 137 || a.Reason != "" {
		t.Errorf("%+v", a)
	}
}

// Section 3.5: figures of a container appear after a second.
func TestStatsOfARunningContainer(t *testing.T) {
	t.Parallel()
	s := newLimited(t).play(t, nil, limited(helper("a", "eat", "100"), 512), helper("b", "exit", "0", "1h")).await("a")
	var a metadata.Stats
	testkit.Eventually(t, "figures of a", func() bool {
		a = metadata.Stats{}
		return s.figures(s.base("a")+"/stats", &a) && a.Memory.Usage > 0
	})
	if a.Memory.Usage < 100<<20 || a.Memory.Limit != 512<<20 || a.Name != "a" || a.ID != s.facts.Containers["a"].DockerID {
		t.Errorf("%+v", a)
	}
	if apart := a.Read.Sub(a.PreRead); apart < time.Second || a.CPU.Usage.Total <= 0 || a.CPU.Usage.Total < a.PreCPU.Usage.Total || a.CPU.System <= a.PreCPU.System {
		t.Errorf("samples %v apart: %+v, before %+v", apart, a.CPU, a.PreCPU)
	}
	if _, ok := a.Networks["eth1"]; !ok || a.Rate == nil {
		t.Errorf("networks %v, rate %v", a.Networks, a.Rate)
	}
	all := map[string]*metadata.Stats{}
	testkit.Eventually(t, "figures of both", func() bool {
		clear(all)
		return s.figures(s.base("b")+"/task/stats", &all) && all[s.facts.Containers["a"].DockerID] != nil && all[s.facts.Containers["b"].DockerID] != nil
	})
	s.end().stopped()
}

// figures reads an answer of the stats paths, false while they limit our rate.
func (s *scene) figures(url string, into any) bool {
	s.t.Helper()
	code, body := s.request(http.MethodGet, url, "")
	if code == http.StatusTooManyRequests {
		return false
	}
	if err := json.Unmarshal([]byte(body), into); err != nil || code != http.StatusOK {
		s.t.Fatalf("%d %s: %v", code, body, err)
	}
	return true
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	table := `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     500       5    0    0    0     0          0         0      500       5    0    0    0     0       0          0
  eth1: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0
`
	want := map[string]metadata.NetworkStats{"eth1": {
		RxBytes: 1000, RxPackets: 10, RxErrors: 1, RxDropped: 2, TxBytes: 2000, TxPackets: 20, TxErrors: 3, TxDropped: 4,
	}}
	if diff := cmp.Diff(want, networks([]byte(table))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := networks([]byte("eth1: x\n\nnonsense")); got["eth1"] != (metadata.NetworkStats{}) {
		t.Errorf("got %v of nonsense", got)
	}
}

// Two requests within a second get one answer: a rate over no time is none.
func TestStatsAreAtLeastASecondApart(t *testing.T) {
	t.Parallel()
	m := meters{samples: map[string]*metadata.Stats{}, answers: map[string]*metadata.Stats{}}
	start := time.Unix(1000, 0)
	at := func(after time.Duration, rx uint64) *metadata.Stats {
		return &metadata.Stats{Read: start.Add(after), Networks: map[string]metadata.NetworkStats{"eth1": {RxBytes: rx}}}
	}
	m.begin("a", at(0, 0))
	if got := m.answer("a", at(999*time.Millisecond, 7)); got != nil {
		t.Errorf("figures after less than a second: %+v", got)
	}
	first := m.answer("a", at(2*time.Second, 100))
	if first == nil || first.Rate.Rx != 50 || !first.PreRead.Equal(start) {
		t.Errorf("got %+v", first)
	}
	if again := m.answer("a", at(2500*time.Millisecond, 900)); again != first {
		t.Errorf("got %+v half a second later", again)
	}
	if m.answer("b", at(0, 0)) != nil {
		t.Error("figures of a container that never began")
	}
	m.begin("a", at(3*time.Second, 0)) // restarted
	if got := m.answer("a", at(3*time.Second, 0)); got != nil {
		t.Errorf("figures of the run before: %+v", got)
	}
}
