package subcommand

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// releaseProgramAfter takes pages of the program's file out of this process's memory. Most
// are those of the start, which the process would have for the rest of its life: 7 of 16 MB
// in health-sync. They stay in the page cache, where the kernel may reclaim them, and
// come back when they are used. A start may wait for other containers for minutes, so it
// does so again, after pauses that become longer.
func releaseProgramAfter(pause time.Duration) {
	time.AfterFunc(pause, func() {
		_, _ = releaseProgram() // without it there is only more memory in use
		releaseProgramAfter(6 * pause)
	})
}

// releaseProgram returns how many mappings it released.
func releaseProgram() (int, error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	mappings := programMappings(string(maps), program)
	for _, m := range mappings {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); errno != 0 {
			return 0, fmt.Errorf("release %x-%x of %s: %w", m.start, m.end, program, errno)
		}
	}
	return len(mappings), nil
}

// mapping is a part of a process's memory.
type mapping struct{ start, end uintptr }

// programMappings finds in /proc/<pid>/maps what can be read from the program's file at any
// time: its code. Read-only data is not among it, because that of a position-independent
// program has relocated pages, which the file has not.
func programMappings(maps, program string) []mapping {
	var found []mapping
	for line := range strings.Lines(maps) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(fields) < 6 || strings.TrimLeft(fields[5], " ") != program || fields[1] != "r-xp" {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.start, &m.end); err == nil {
			found = append(found, m)
		}
	}
	return found
}
