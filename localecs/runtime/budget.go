package runtime

import (
	"strconv"
	"sync/atomic"
)

// Budget is the memory that the containers of one task share.
type Budget struct {
	group  *ControlGroup
	number atomic.Uint64 // a container that is restarted gets a group of its own
}

// Limit makes a task's budget, in bytes; 0 leaves the task without a limit of
// its own. Where the host cannot limit memory, it says so once and returns nil,
// which limits nothing.
func (r *Runtime) Limit(task string, memory uint64) (*Budget, error) {
	if r.groups == nil {
		r.warn(task, []string{r.noGroups.Error()})
		return nil, nil
	}
	g, err := r.groups.Task(task, memory)
	if err != nil {
		return nil, err
	}
	return &Budget{group: g}, nil
}

// Close takes the budget away. The containers must have ended.
func (b *Budget) Close() error {
	if b == nil {
		return nil
	}
	return b.group.Close()
}

// admit makes a container's group with a process in it, before that process
// does anything; nil without a budget.
func (b *Budget) admit(pid int, memory uint64) (*ControlGroup, error) {
	if b == nil {
		return nil, nil
	}
	g, err := b.group.Container(strconv.FormatUint(b.number.Add(1), 10), memory)
	if err != nil {
		return nil, err
	}
	return g, g.Add(pid)
}

// Usage is what the container's group has measured.
func (n *native) Usage() (u Usage, ok bool) {
	if n.group == nil {
		return u, false
	}
	return n.group.Usage(), true
}
