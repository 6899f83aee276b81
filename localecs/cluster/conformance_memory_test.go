package cluster

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// limited gives a container a hard limit in MiB.
func limited(c taskdef.Container, mib int) taskdef.Container {
	c.Memory = &mib
	return c
}

// newLimited makes a fixture on a host that can limit memory.
func newLimited(t *testing.T) *fixture {
	t.Helper()
	w := newTools(t, nil)
	native, ok := w.runtime.(*runtime.Runtime)
	if !ok {
		return w // an engine can
	}
	budget, err := native.Limit("probe", 0)
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

func TestConformanceOutOfMemory(t *testing.T) {
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
			v := newLimited(t).startTask(t, func(d *taskdef.TaskDefinition) { d.Memory = c.task }, c.container).stopped()
			a := v.Containers[0]
			if a.ExitCode == nil || *a.ExitCode != 137 {
				t.Errorf("%+v, want exit code 137", a)
			}
			testkit.Equal(t, "reason", a.Reason, "OutOfMemoryError: Container killed due to memory usage")
			if v.StopCode != scheduler.StopEssentialContainerExited {
				t.Errorf("stop code %s", v.StopCode)
			}
		})
	}
}

// What is killed for another reason is not out of memory.
func TestKilledContainerIsNotOutOfMemory(t *testing.T) {
	t.Parallel()
	s := newLimited(t).startTask(t, nil, limited(deaf("a", 2), 128))
	s.until("running", func(v scheduler.View) bool { return v.KnownStatus == scheduler.StatusRunning })
	a := s.end().stopped().Containers[0]
	if a.ExitCode == nil || *a.ExitCode != 137 {
		t.Errorf("%+v, want exit code 137", a)
	}
	testkit.Equal(t, "reason", a.Reason, "")
}

// The figures of a container appear after a second.
func TestStatsOfARunningContainer(t *testing.T) {
	t.Parallel()
	s := newLimited(t).startTask(t, nil, limited(helper("a", "eat", "100"), 512), helper("b", "exit", "0", "1h")).await("a")
	var a metadata.Stats
	testkit.Eventually(t, "figures of a", func() bool {
		a = metadata.Stats{}
		return s.figures(s.base("a")+"/stats", &a) && a.Memory.Usage > 0
	})
	if a.Memory.Usage < 100<<20 {
		t.Errorf("memory usage %d, want 100 MiB or more", a.Memory.Usage)
	}
	testkit.Equal(t, "memory limit", a.Memory.Limit, 512<<20)
	if a.PIDs.Current == 0 {
		t.Error("no threads")
	}
	testkit.Equal(t, "name", a.Name, "a")
	testkit.Equal(t, "ID", a.ID, s.resources.facts.Containers["a"].DockerID)
	if apart := a.Read.Sub(a.PreRead); apart < time.Second {
		t.Errorf("samples %v apart, want a second or more", apart)
	}
	if total := a.CPU.Usage.Total; total <= 0 || total < a.PreCPU.Usage.Total {
		t.Errorf("CPU usage %+v, before %+v", a.CPU, a.PreCPU)
	}
	if a.CPU.System <= a.PreCPU.System {
		t.Errorf("CPU of the system %v, before %v", a.CPU.System, a.PreCPU.System)
	}
	if _, ok := a.Networks["eth1"]; !ok || a.Rate == nil {
		t.Errorf("networks %v, rate %v", a.Networks, a.Rate)
	}
	all := map[string]*metadata.Stats{}
	testkit.Eventually(t, "figures of both", func() bool {
		clear(all)
		return s.figures(s.base("b")+"/task/stats", &all) && all[s.resources.facts.Containers["a"].DockerID] != nil && all[s.resources.facts.Containers["b"].DockerID] != nil
	})
	s.end().stopped()
}

// figures reads an answer of the stats paths, false while they limit our rate.
func (s *taskFixture) figures(url string, into any) bool {
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
