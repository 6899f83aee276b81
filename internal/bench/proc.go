package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of /proc/<pid>/stat on every architecture of Linux's ABI.
const userHZ = 100

// rss returns the memory that a process has in RAM, in MB, its share of the page
// cache included.
func rss(pid int) (float64, error) {
	data, err := os.ReadFile(procPath(pid, "status"))
	if err != nil {
		return 0, err
	}
	kib, err := parseStatus(data, "VmRSS")
	return float64(kib) * 1024 / 1e6, err
}

// cpuTime returns the CPU time of a process so far. The scheduler's own figure is
// exact; stat counts in steps of 10 ms, which is much for an idle program.
func cpuTime(pid int) (time.Duration, error) {
	var total time.Duration
	files, err := filepath.Glob(procPath(pid, "task/*/schedstat"))
	if err != nil || len(files) == 0 {
		return statCPU(pid)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // a thread that ended; Go's stay
		}
		if err != nil {
			return 0, err
		}
		d, err := parseSchedstat(data)
		if err != nil {
			return 0, err
		}
		total += d
	}
	return total, nil
}

func statCPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0, err
	}
	return parseStat(data)
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// parseStatus finds a value in kB (that is, KiB) in /proc/<pid>/status.
func parseStatus(data []byte, key string) (int64, error) {
	for line := range bytes.Lines(data) {
		value, ok := bytes.CutPrefix(line, []byte(key+":"))
		if !ok {
			continue
		}
		number, ok := strings.CutSuffix(strings.TrimSpace(string(value)), " kB")
		if !ok {
			return 0, fmt.Errorf("parse process status: %s is %q, want kB", key, value)
		}
		return strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	}
	return 0, fmt.Errorf("parse process status: no %s", key)
}

// parseSchedstat reads the first of three numbers: nanoseconds on a CPU.
func parseSchedstat(data []byte) (time.Duration, error) {
	fields := strings.Fields(string(data))
	if len(fields) != 3 {
		return 0, fmt.Errorf("parse schedstat: %q, want three numbers", data)
	}
	ns, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse schedstat: %w", err)
	}
	return time.Duration(ns), nil
}

// parseStat reads utime and stime. The program's name, in parentheses, may
// hold spaces and parentheses itself.
func parseStat(data []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("parse process stat: %q is too short", data)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse process stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
}
