package cluster

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// interval is how far the two samples of an answer are apart at least, as the container engine's are.
const interval = time.Second

const clockTick = 10 * time.Millisecond

// meter keeps, for each container of a task, the sample to compare with and the last answer made of two.
type meter struct {
	visit func(func() error) error

	mu      sync.Mutex
	samples map[string]*metadata.Stats
	answers map[string]*metadata.Stats
}

// newMeter makes a task's meter. visit runs a function in the task's network; it is
// nil for a task without its own network.
func newMeter(visit func(func() error) error) *meter {
	return &meter{visit: visit, samples: map[string]*metadata.Stats{}, answers: map[string]*metadata.Stats{}}
}

// Begin starts a container's figures, those of each of its runs anew.
func (t *meter) Begin(container string, c *runtime.Container) {
	if first, ok := t.sample(c); ok {
		t.begin(container, first)
	}
}

func (t *meter) begin(container string, first *metadata.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples[container] = first
	delete(t.answers, container)
}

// Stats returns the container's answer to /stats; nil in its first second, and where the host does not measure.
func (t *meter) Stats(container string, c *runtime.Container) *metadata.Stats {
	now, ok := t.sample(c)
	if !ok {
		return nil
	}
	return t.answer(container, now)
}

// answer compares a new sample with the one before when that is old enough, and
// repeats the last answer otherwise; nil in the container's first second.
func (t *meter) answer(container string, now *metadata.Stats) *metadata.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.samples[container]
	if before != nil && now.Read.Sub(before.Read) >= interval {
		t.samples[container] = now
		t.answers[container] = compare(before, now)
	}
	return t.answers[container]
}

func compare(before, now *metadata.Stats) *metadata.Stats {
	s := *now
	s.PreRead, s.PreCPU = before.Read, before.CPU
	if len(now.Networks) > 0 {
		seconds := now.Read.Sub(before.Read).Seconds()
		s.Rate = &metadata.NetworkRate{}
		for name, n := range now.Networks {
			b := before.Networks[name]
			s.Rate.Rx += float64(n.RxBytes-b.RxBytes) / seconds
			s.Rate.Tx += float64(n.TxBytes-b.TxBytes) / seconds
		}
	}
	return &s
}

func (t *meter) sample(c *runtime.Container) (*metadata.Stats, bool) {
	u, ok := c.Usage()
	if !ok {
		return nil, false
	}
	s := &metadata.Stats{Read: time.Now().UTC(), Memory: metadata.MemoryStats{Usage: u.Memory, Limit: u.Limit}}
	s.CPU.Usage.User, s.CPU.Usage.Kernel = uint64(u.User), uint64(u.Kernel)
	s.CPU.Usage.Total = s.CPU.Usage.User + s.CPU.Usage.Kernel
	s.CPU.System, s.CPU.Online = systemTime(), uint32(goruntime.NumCPU())
	if t.visit == nil {
		return s, true
	}
	// What cannot be read is not shown.
	_ = t.visit(func() error {
		eth1, err := netlink.LinkByName("eth1") // of an awsvpc task's interfaces the one that counts
		if err == nil {
			n := eth1.Attrs().Statistics
			s.Networks = map[string]metadata.NetworkStats{"eth1": {
				RxBytes: n.RxBytes, RxPackets: n.RxPackets, RxErrors: n.RxErrors, RxDropped: n.RxDropped,
				TxBytes: n.TxBytes, TxPackets: n.TxPackets, TxErrors: n.TxErrors, TxDropped: n.TxDropped,
			}}
		}
		return err
	})
	return s, true
}

// systemTime returns the time that all processors have counted, in nanoseconds.
func systemTime() uint64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	var ticks uint64
	for i, field := range strings.Fields(first) {
		if n, err := strconv.ParseUint(field, 10, 64); err == nil && i <= 8 { // a guest's time is a user's, too
			ticks += n
		}
	}
	return ticks * uint64(clockTick)
}
