package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is what a program and all that it started hold, in MB.
type memory struct {
	// processes is the sum over them of what each has of its own and of its
	// share of what several have.
	processes float64
	// kernel is what the kernel holds for all processes of the machine, and
	// cannot free; available is what the machine has left.
	kernel, available float64
}

// memoryNow looks at a process and its descendants. Garbage of this process is
// given back before.
func memoryNow(root int) (memory, error) {
	debug.FreeOSMemory()
	var m memory
	parents, err := parentsOfAll()
	if err != nil {
		return m, err
	}
	for pid := range parents {
		if !descends(parents, pid, root) {
			continue
		}
		pss, err := memoryOf(pid)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return m, err
		}
		m.processes += pss
	}
	if m.kernel, err = kernelMemory(); err != nil {
		return m, err
	}
	m.available, err = machine("MemAvailable")
	return m, err
}

// memoryOf is a process's proportional set size in MB.
func memoryOf(pid int) (float64, error) {
	data, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	kib, err := parseStatus(data, "Pss")
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return float64(kib) * 1024 / 1e6, nil
}

// kernelMemory is what the kernel holds for processes, namespaces and links,
// in MB.
func kernelMemory() (float64, error) {
	return machine("SUnreclaim", "KernelStack", "PageTables", "Percpu")
}

// machine is the sum of lines of /proc/meminfo, in MB.
func machine(keys ...string) (float64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, key := range keys {
		kib, err := parseStatus(data, key)
		if err != nil {
			return 0, fmt.Errorf("memory of the machine: %w", err)
		}
		sum += kib
	}
	return float64(sum) * 1024 / 1e6, nil
}

// parentsOfAll is every process's parent.
func parentsOfAll() (map[int]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		if parents[pid], err = parseParent(data); err != nil {
			return nil, err
		}
	}
	return parents, nil
}

// descends reports whether a process is root or descends from it.
func descends(parents map[int]int, pid, root int) bool {
	for pid != root && pid > 1 {
		pid = parents[pid]
	}
	return pid == root
}

// parseParent reads the parent's number in /proc/<pid>/stat. The program's
// name, in parentheses, may hold spaces and parentheses itself.
func parseParent(data []byte) (int, error) {
	text := string(data)
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 2 {
		return 0, fmt.Errorf("parse process stat: %q is too short", data)
	}
	return strconv.Atoi(fields[1])
}
