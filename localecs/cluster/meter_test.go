package cluster

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

// Two requests within a second get one answer: a rate over no time is none.
func TestStatsAreReadAtMostOnceASecond(t *testing.T) {
	t.Parallel()
	m := newMeter(nil)
	start := time.Unix(1000, 0)
	at := func(after time.Duration, rx uint64) *metadata.Stats {
		return &metadata.Stats{Read: start.Add(after), Networks: map[string]metadata.NetworkStats{"eth1": {RxBytes: rx}}}
	}
	m.begin("a", at(0, 0))
	if got := m.answer("a", at(999*time.Millisecond, 7)); got != nil {
		t.Errorf("figures after less than a second: %+v", got)
	}
	first := m.answer("a", at(2*time.Second, 100))
	if first == nil || first.Rate.Rx != 50 {
		t.Fatalf("got %+v, want 50 bytes a second", first)
	}
	if !first.PreRead.Equal(start) {
		t.Errorf("PreRead is %s, want %s", first.PreRead, start)
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

func TestSystemTimePasses(t *testing.T) {
	t.Parallel()
	if got := systemTime(); got < uint64(time.Second) {
		t.Errorf("this machine has been up for %v", time.Duration(got))
	}
}
