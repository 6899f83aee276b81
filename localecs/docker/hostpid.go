package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func numbers(pid int) []int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	return parseNumbers(string(status))
}

func parseNumbers(status string) []int {
	for line := range strings.Lines(status) {
		list, ok := strings.CutPrefix(line, "NSpid:")
		if !ok {
			continue
		}
		var all []int
		for _, field := range strings.Fields(list) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil
			}
			all = append(all, n)
		}
		return all
	}
	return nil
}

func inside(pid int, container string) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(groups), container)
}

func members(container string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []int
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && inside(pid, container) {
			all = append(all, pid)
		}
	}
	return all
}

// pidLevel finds at which place of a process's numbers the engine's is, by a container
// with its own pid namespace: the last one is the container's. pid is its first
// process here.
func pidLevel(container string, engines int) (pid, level int, err error) {
	for _, pid := range members(container) {
		if all := numbers(pid); len(all) > 0 {
			level := max(len(all)-2, 0)
			if all[level] == engines {
				return pid, level, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("process %d of the Docker engine is not on this machine, or cannot be seen: it runs in a virtual machine or elsewhere", engines)
}

// openProcess opens a process of a container that the engine knows by a number. The
// file is its pidfd, non-blocking; nil when it has ended.
func openProcess(container string, engines, level int) (int, *os.File) {
	candidates := members(container)
	// Most often the engine's numbers are ours.
	if i := slices.Index(candidates, engines); level == 0 && i >= 0 {
		candidates = candidates[i : i+1]
	}
	for _, pid := range candidates {
		if all := numbers(pid); len(all) <= level || all[level] != engines {
			continue
		}
		fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
		if err != nil {
			continue
		}
		file := os.NewFile(uintptr(fd), fmt.Sprintf("pidfd-%d", pid))
		// Again, now that the number cannot go to another process.
		if all := numbers(pid); inside(pid, container) && len(all) > level && all[level] == engines {
			return pid, file
		}
		file.Close()
	}
	return 0, nil
}
