package meter

import (
	"cmp"
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

// interval is how far the two samples of an answer are apart, as the container engine's are.
const interval = time.Second

// keeps is for how long samples are taken after a call.
const keeps = time.Minute

// noLimit is the limit of a container without one, as Linux has it in control groups of version 1.
const noLimit = 9223372036854771712

const clockTick = 10 * time.Millisecond

// Container is what is measured.
type Container interface {
	// Usage reports ok as false where the host does not measure, and after the container's end.
	Usage() (u runtime.Usage, ok bool)
	Done() <-chan struct{}
}

// Meter measures the containers of a task.
type Meter struct {
	// visit runs a function in the task's network; nil for a task in the machine's network.
	visit func(func() error) error
	// memory is the task's limit in bytes, 0 without one.
	memory uint64

	mu     sync.Mutex
	series map[string]*series
}

// series are the figures of a container's run.
type series struct {
	// sample is the one to compare with; answer was made of two, and is nil before.
	sample, answer *metadata.Stats
	asked          time.Time
	sampled        bool // each second
}

// New returns the meter of a task with this limit in bytes, 0 without one. visit runs a function in the task's network,
// and is nil for a task in the machine's network.
func New(visit func(func() error) error, memory uint64) *Meter {
	return &Meter{visit: visit, memory: memory, series: map[string]*series{}}
}

// Begin starts a container's figures, those of each of its runs anew.
func (m *Meter) Begin(container string, c Container) {
	if first, ok := m.sample(c); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.series[container] = &series{sample: first}
	}
}

// Stats returns the container's answer to /stats; nil in its first second, and where the host does not measure. The
// samples of the first answer are its start and now, those of the next ones a second apart.
func (m *Meter) Stats(container string, c Container) *metadata.Stats {
	now, ok := m.sample(c)
	if !ok {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[container]
	if s == nil {
		return nil
	}
	s.asked = now.Read
	if !s.sampled {
		if now.Read.Sub(s.sample.Read) >= interval {
			s.add(now)
		}
		s.sampled = true
		go m.follow(s, c)
	}
	return s.answer
}

// follow adds a sample each second until the container ends, or no request came for a while.
func (m *Meter) follow(s *series, c Container) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-c.Done():
			return
		case <-tick.C:
		}
		now, ok := m.sample(c)
		m.mu.Lock()
		wanted := ok && now.Read.Sub(s.asked) < keeps
		if s.sampled = wanted; wanted {
			s.add(now)
		}
		m.mu.Unlock()
		if !wanted {
			return
		}
	}
}

// add makes an answer of a new sample and the one before.
func (s *series) add(now *metadata.Stats) { s.sample, s.answer = now, compare(s.sample, now) }

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

func (m *Meter) sample(c Container) (*metadata.Stats, bool) {
	u, ok := c.Usage()
	if !ok {
		return nil, false
	}
	s := &metadata.Stats{Read: time.Now().UTC(), PIDs: metadata.PIDsStats{Current: u.Threads},
		Memory: metadata.MemoryStats{Usage: u.Memory, Limit: cmp.Or(u.Limit, noLimit)}}
	hierarchical := min(s.Memory.Limit, cmp.Or(m.memory, noLimit))
	s.Memory.Stats = map[string]uint64{"hierarchical_memory_limit": hierarchical}
	s.CPU.Usage.User, s.CPU.Usage.Kernel = uint64(u.User), uint64(u.Kernel)
	s.CPU.Usage.Total = s.CPU.Usage.User + s.CPU.Usage.Kernel
	s.CPU.System, s.CPU.Online = systemTime(), uint32(goruntime.NumCPU())
	if m.visit == nil {
		return s, true
	}
	// What cannot be read is not shown.
	_ = m.visit(func() error {
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
