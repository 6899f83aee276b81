package runtime

import (
	"fmt"
	"os"
	"time"
)

// Usage is what a group's processes use and have used.
type Usage struct {
	// Memory is in bytes, page cache included; Limit is the group's own, 0 for none.
	Memory, Limit uint64
	// User and Kernel are processor time.
	User, Kernel time.Duration
	// Threads are those of all processes.
	Threads uint64
}

// unlimited is above what any machine has; version 1 says "no limit" with the largest multiple of a page.
const unlimited = 1 << 60

// GroupOfProcess returns the group of a process, which another program has made: for its Usage.
func GroupOfProcess(pid int) (*ControlGroup, error) {
	h, err := thisHost()
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, err
	}
	h.groups = string(groups)
	hierarchies, err := h.hierarchiesOf()
	if err != nil {
		return nil, err
	}
	return &ControlGroup{hierarchies: hierarchies}, nil
}

// Usage reads the group's counters; what cannot be read is 0.
func (g *ControlGroup) Usage() Usage {
	var u Usage
	for _, p := range g.hierarchies {
		switch p.kind {
		case memoryV1:
			u.Memory = p.counter("memory.usage_in_bytes", "")
			u.Limit = p.counter("memory.limit_in_bytes", "")
			u.Threads = p.lines("tasks")
		case cpuV1:
			u.User = time.Duration(p.counter("cpuacct.usage_user", ""))
			u.Kernel = time.Duration(p.counter("cpuacct.usage_sys", ""))
		case unified:
			u.Memory = p.counter("memory.current", "")
			u.Limit = p.counter("memory.max", "") // "max" counts as 0
			u.Threads = p.lines("cgroup.threads")
			u.User = time.Duration(p.counter("cpu.stat", "user_usec")) * time.Microsecond
			u.Kernel = time.Duration(p.counter("cpu.stat", "system_usec")) * time.Microsecond
		}
	}
	if u.Limit > unlimited {
		u.Limit = 0
	}
	return u
}
