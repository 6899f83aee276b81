package redirect

import (
	"slices"
	"strings"
)

// ResolvConfPath is the resolver's configuration, one file for all containers of a task.
const ResolvConfPath = "/etc/resolv.conf"

const localServer = "127.0.0.1"

// UseConsulDNS makes 127.0.0.1 the first name server of the file at path, which is
// written in place: a container runtime has mounted it. undo restores its text; the error is
// permanent.
func UseConsulDNS(path string) (undo func() error, err error) {
	return edit(path, ResolvConf)
}

// ResolvConf returns the resolver configuration with 127.0.0.1 as its first name server. All other lines stay as they
// are, so a second call changes nothing.
func ResolvConf(text string) string {
	lines := strings.SplitAfter(text, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" || nameServer(line) == localServer })
	first := slices.IndexFunc(lines, func(line string) bool { return nameServer(line) != "" })
	if first == -1 {
		first = len(lines)
		if first > 0 && !strings.HasSuffix(lines[first-1], "\n") {
			lines[first-1] += "\n"
		}
	}
	return strings.Join(slices.Insert(lines, first, "nameserver "+localServer+"\n"), "")
}

// nameServer returns the address of a line that names a server, or empty.
func nameServer(line string) string {
	if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
		return fields[1]
	}
	return ""
}
