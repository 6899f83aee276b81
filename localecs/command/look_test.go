package command

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// stateDir is -dir of the runs of a machine, below its directory.
const stateDir = "state"

// look lists what a machine shows of itself: processes, namespaces, mounts, links, shared memory of every kind,
// temporary files, and what else a run could change. Orphans that have ended are buried first.
func look(dir string) []string {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	var seen []string
	add := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
	for _, p := range processes() {
		add("process %d %q", p.pid, p.args)
	}
	// No other process has namespaces or descriptors: these are the machine's own.
	for _, pattern := range []string{"/proc/self/ns/*", "/proc/self/task/*/ns/*"} {
		links, _ := filepath.Glob(pattern)
		for _, l := range links {
			name, _ := os.Readlink(l)
			add("namespace %s", name)
		}
	}
	for _, line := range lines("/proc/self/mountinfo") {
		add("mount %s", line)
	}
	for _, file := range []string{"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"} {
		for _, line := range lines(file) {
			add("%s: %s", filepath.Base(file), line)
		}
	}
	for _, file := range []string{"/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward"} {
		add("%s: %s", file, lines(file))
	}
	for _, d := range []string{"/dev/shm", filepath.Join(dir, "mqueue"), filepath.Join(dir, "tmp")} {
		for _, f := range below(d) {
			add("file %s", f)
		}
	}
	add("links %s", links())
	slices.Sort(seen)
	return slices.Compact(seen)
}

// kept lists what only the next run must remove after a run was killed: files
// beside the logs and the pictures, and control groups.
func kept(dir string) []string {
	var seen []string
	for _, f := range below(filepath.Join(dir, stateDir)) {
		scenario, rest, _ := strings.Cut(strings.TrimPrefix(f, filepath.Join(dir, stateDir)+"/"), "/")
		stays := slices.Contains([]string{"", "logs", "timeline.html", "timeline.json", "state.json"}, rest)
		if !stays && !strings.HasPrefix(rest, "logs/") {
			seen = append(seen, "state "+scenario+"/"+rest)
		}
	}
	for _, line := range lines("/proc/self/cgroup") {
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 {
			groups, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", parts[1], parts[2], "localecs-*"))
			for _, g := range groups {
				seen = append(seen, "group "+g)
			}
		}
	}
	return seen
}

func lines(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// below returns every file and directory in dir.
func below(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir && err == nil {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// links returns the network's, with their addresses.
func links() []string {
	all, err := netlink.LinkList()
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, l := range all {
		addresses, _ := netlink.AddrList(l, netlink.FAMILY_ALL)
		names = append(names, fmt.Sprint(l.Attrs().Name, addresses))
	}
	return names
}
