package runtime

import (
	"strconv"
)

// Limit makes the control group of a task, whose containers share so much memory, in bytes; 0 leaves the task without a
// limit. Where the host cannot limit memory, it logs that once and returns nil, which limits nothing.
func (r *Runtime) Limit(task string, memory uint64) (*ControlGroup, error) {
	if r.groups == nil {
		r.warn(task, []string{r.noGroups.Error()})
		return nil, nil
	}
	return r.groups.task(task, memory)
}

// admit makes a container's group in that of its task, with a process in it, before
// that process does anything; nil without a task's group.
func (g *ControlGroup) admit(pid int, memory uint64) (*ControlGroup, error) {
	if g == nil {
		return nil, nil
	}
	c, err := g.below(strconv.FormatUint(g.number.Add(1), 10), memory)
	if err != nil {
		return nil, err
	}
	return c, c.add(pid)
}

// Usage returns what the container's group has measured.
func (n *native) Usage() (u Usage, ok bool) {
	if n.group == nil {
		return u, false
	}
	return n.group.Usage(), true
}
