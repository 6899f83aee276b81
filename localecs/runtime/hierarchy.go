package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type kind int

const (
	memoryV1 kind = iota
	cpuV1
	unified
)

type hierarchy struct {
	kind kind
	dir  string
}

var errNoMemory = errors.New("no cgroup hierarchy has a memory controller for this process")

// hostGroups is where the kernel describes its hierarchies; another one in tests of
// layouts that this machine does not have.
type hostGroups struct {
	// mounts and groups are the contents of /proc/self/mountinfo and /proc/self/cgroup.
	mounts, groups string
	// readFile reads a group's file.
	readFile func(string) ([]byte, error)
}

func thisHost() (hostGroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hostGroups{}, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	return hostGroups{mounts: string(mounts), groups: string(groups), readFile: os.ReadFile}, err
}

// hierarchies returns the location of the memory controller, and of the controller that counts processor time if that is
// another hierarchy and there.
func (h hostGroups) hierarchies() ([]hierarchy, error) {
	if memory, ok := h.v1("memory"); ok {
		found := []hierarchy{{memoryV1, memory}}
		if cpu, ok := h.v1("cpuacct"); ok {
			found = append(found, hierarchy{cpuV1, cpu})
		}
		return found, nil
	}
	if dir, ok := h.v2(); ok {
		return []hierarchy{{unified, dir}}, nil
	}
	return nil, errNoMemory
}

// hierarchiesOf returns the locations of a process of the host, whichever program has put it there.
func (h hostGroups) hierarchiesOf() ([]hierarchy, error) {
	found, err := h.hierarchies()
	if err == nil && found[0].kind != unified {
		return found, nil
	}
	own, ok := h.ownGroup(func(controllers string) bool { return controllers == "" })
	if ok {
		if dir, ok := h.mounted("cgroup2", "", own); ok {
			return []hierarchy{{unified, dir}}, nil
		}
	}
	return nil, errNoMemory
}

// v1 returns this process's own group in a controller's hierarchy: what is made
// below it stays within the limits that this process has.
func (h hostGroups) v1(controller string) (string, bool) {
	own, ok := h.ownGroup(func(controllers string) bool {
		return slices.Contains(strings.Split(controllers, ","), controller)
	})
	if !ok {
		return "", false
	}
	return h.mounted("cgroup", controller, own)
}

// v2 returns the group beside this process's own, since a group that has processes may not hand controllers down; only
// the hierarchy's root may do both.
func (h hostGroups) v2() (string, bool) {
	own, ok := h.ownGroup(func(controllers string) bool { return controllers == "" })
	if !ok {
		return "", false
	}
	dir, ok := h.mounted("cgroup2", "", filepath.Dir(own))
	if !ok {
		return "", false
	}
	handed, err := h.readFile(filepath.Join(dir, "cgroup.subtree_control"))
	return dir, err == nil && slices.Contains(strings.Fields(string(handed)), "memory")
}

// ownGroup returns this process's path in the hierarchy whose controllers fit.
func (h hostGroups) ownGroup(fits func(controllers string) bool) (string, bool) {
	for line := range strings.Lines(h.groups) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) == 3 && fits(parts[1]) {
			return parts[2], true
		}
	}
	return "", false
}

// mounted returns the path of a group of a hierarchy, if a mount shows it.
func (h hostGroups) mounted(fstype, controller, group string) (string, bool) {
	for line := range strings.Lines(h.mounts) {
		mount, super, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		left, right := strings.Fields(mount), strings.Fields(super)
		if !ok || len(left) < 5 || len(right) < 3 || right[0] != fstype {
			continue
		}
		if controller != "" && !slices.Contains(strings.Split(right[2], ","), controller) {
			continue
		}
		below, err := filepath.Rel(left[3], group)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		return filepath.Join(left[4], below), true
	}
	return "", false
}
