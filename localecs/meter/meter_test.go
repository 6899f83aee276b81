package meter

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// fake is a container that uses a MiB more at each sample.
type fake struct {
	samples atomic.Int64
	limit   uint64
	done    chan struct{}
}

func (f *fake) Done() <-chan struct{} { return f.done }

func (f *fake) Usage() (runtime.Usage, bool) {
	return runtime.Usage{Memory: uint64(f.samples.Add(1)) << 20, Limit: f.limit, Threads: 3}, true
}

// While somebody asks, the two samples of an answer are a second apart, however seldom that is. Nothing is measured
// when nobody has asked for a minute, and after the container's end.
func TestSamplesAreASecondApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := New(nil, 0), &fake{done: make(chan struct{})}
		m.Begin("a", c)
		testkit.Equal(t, "figures in the first second", m.Stats("a", c), nil)
		testkit.Equal(t, "figures of a container that never began", m.Stats("b", c), nil)
		apart := func() time.Duration {
			s := m.Stats("a", c)
			return s.Read.Sub(s.PreRead)
		}
		for _, pause := range []time.Duration{1500 * time.Millisecond, 100 * time.Millisecond, 15 * time.Second,
			59 * time.Second} {
			<-time.After(pause)
			testkit.Equal(t, "samples after "+pause.String(), apart(), time.Second)
		}
		<-time.After(10 * time.Minute)
		quiet := c.samples.Load()
		<-time.After(10 * time.Minute)
		testkit.Equal(t, "samples while nobody asks", c.samples.Load(), quiet)
		if first := apart(); first < 19*time.Minute {
			t.Errorf("the first answer after that has samples %s apart, want those since the last call", first)
		}
		<-time.After(2500 * time.Millisecond)
		testkit.Equal(t, "samples after that", apart(), time.Second)
		close(c.done)
		synctest.Wait()

		m.Begin("a", c) // restarted
		testkit.Equal(t, "figures of the run before", m.Stats("a", c), nil)
	})
}

func TestLimitsOfContainerAndTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ own, task, limit, least uint64 }{
		{0, 0, noLimit, noLimit}, {64, 0, 64, 64}, {0, 512, noLimit, 512}, {64, 512, 64, 64}, {512, 64, 512, 64},
	} {
		s, _ := New(nil, c.task).sample(&fake{limit: c.own})
		testkit.Equal(t, "limit", s.Memory.Limit, c.limit)
		testkit.Equal(t, "hierarchical_memory_limit", s.Memory.Stats["hierarchical_memory_limit"], c.least)
		testkit.Equal(t, "threads", s.PIDs.Current, 3)
	}
}

func TestRateIsThatBetweenTheSamples(t *testing.T) {
	t.Parallel()
	at := func(seconds int64, rx uint64) *metadata.Stats {
		return &metadata.Stats{Read: time.Unix(seconds, 0),
			Networks: map[string]metadata.NetworkStats{"eth1": {RxBytes: rx}}}
	}
	s := series{sample: at(1000, 0)}
	s.add(at(1002, 100))
	testkit.Equal(t, "bytes a second", s.answer.Rate.Rx, 50)
	testkit.Equal(t, "preread", s.answer.PreRead, time.Unix(1000, 0))
}

func TestSystemTimePasses(t *testing.T) {
	t.Parallel()
	if got := systemTime(); got < uint64(time.Second) {
		t.Errorf("this machine has been up for %v", time.Duration(got))
	}
}
