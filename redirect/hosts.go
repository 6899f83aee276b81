package redirect

import (
	"slices"
	"strings"
)

// HostsPath is the hosts file of a container. It may be one file for all containers of
// a task, or one for each.
const HostsPath = "/etc/hosts"

// Lines around our block of a hosts file.
const (
	blockBegin = "# consul-ecs upstreams: begin"
	blockEnd   = "# consul-ecs upstreams: end"
)

// WriteHosts merges the lines into the hosts file at path, which is written in place: a
// container runtime has mounted it. undo restores its text; the error is permanent.
func WriteHosts(path string, lines []string) (undo func() error, err error) {
	return edit(path, func(text string) string { return MergeHosts(text, lines) })
}

// MergeHosts returns the text of a hosts file with the lines as our block at its end, in place of what an earlier call
// added. Without lines there is no block. The lines of others stay.
func MergeHosts(text string, lines []string) string {
	var b strings.Builder
	b.WriteString(withoutBlock(text))
	if len(lines) == 0 {
		return b.String()
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	for _, line := range slices.Concat([]string{blockBegin}, lines, []string{blockEnd}) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// withoutBlock leaves a block without an end alone, except for its mark: what follows
// may belong to others.
func withoutBlock(text string) string {
	lines := strings.SplitAfter(text, "\n")
	is := func(mark string) func(string) bool {
		return func(line string) bool { return strings.TrimSpace(line) == mark }
	}
	if begin := slices.IndexFunc(lines, is(blockBegin)); begin >= 0 {
		length := slices.IndexFunc(lines[begin:], is(blockEnd))
		lines = slices.Delete(lines, begin, begin+max(length, 0)+1)
	}
	return strings.Join(lines, "")
}
