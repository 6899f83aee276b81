package localecs

import (
	"bufio"
	"bytes"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/endpoints/metadata"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// statsInterval is how far the two samples of an answer are apart at least, as
// the container engine's are.
const statsInterval = time.Second

// clockTick is the unit of /proc/stat.
const clockTick = 10 * time.Millisecond

// meters keep, for each container, the sample to compare with and the last
// answer made of two.
type meters struct {
	mu      sync.Mutex
	samples map[string]*metadata.Stats
	answers map[string]*metadata.Stats
}

// begin starts a container's figures anew.
func (m *meters) begin(container string, first *metadata.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples[container] = first
	delete(m.answers, container)
}

// answer compares a new sample with the one before when that is old enough, and
// repeats the last answer otherwise; nil in the container's first second.
func (m *meters) answer(container string, now *metadata.Stats) *metadata.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.samples[container]
	if before != nil && now.Read.Sub(before.Read) >= statsInterval {
		m.samples[container] = now
		m.answers[container] = compare(before, now)
	}
	return m.answers[container]
}

// compare is one answer of two samples.
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

// stats is the container's answer to /stats; nil while there is none.
func (t *Task) stats(container string) *metadata.Stats {
	c := t.container(container)
	if c == nil {
		return nil
	}
	s, ok := t.sample(c)
	if !ok {
		return nil
	}
	return t.meters.answer(container, s)
}

// sample measures a container; false where the host does not.
func (t *Task) sample(c *runtime.Container) (*metadata.Stats, bool) {
	u, ok := c.Usage()
	if !ok {
		return nil, false
	}
	s := &metadata.Stats{Read: time.Now().UTC(), Memory: metadata.MemoryStats{Usage: u.Memory, Limit: u.Limit}}
	s.CPU.Usage.User, s.CPU.Usage.Kernel = uint64(u.User), uint64(u.Kernel)
	s.CPU.Usage.Total = s.CPU.Usage.User + s.CPU.Usage.Kernel
	s.CPU.System, s.CPU.Online = systemTime(), uint32(goruntime.NumCPU())
	// Without an own network there are no figures of it.
	_ = t.ns.Do(func() error {
		table, err := os.ReadFile("/proc/thread-self/net/dev")
		s.Networks = networks(table)
		return err
	})
	return s, true
}

// systemTime is the time all processors have been through, in nanoseconds.
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

// networks reads the kernel's table of interfaces: of an awsvpc task's, eth1 is
// the one that counts.
func networks(table []byte) map[string]metadata.NetworkStats {
	found := map[string]metadata.NetworkStats{}
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		name, figures, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		if !ok || name != "eth1" {
			continue
		}
		var n [16]uint64
		for i, field := range strings.Fields(figures) {
			if i < len(n) {
				n[i], _ = strconv.ParseUint(field, 10, 64)
			}
		}
		found[name] = metadata.NetworkStats{
			RxBytes: n[0], RxPackets: n[1], RxErrors: n[2], RxDropped: n[3],
			TxBytes: n[8], TxPackets: n[9], TxErrors: n[10], TxDropped: n[11],
		}
	}
	return found
}
