package host

import (
	"strconv"
	"strings"
)

// Who may use which IDs (subuid(5), subgid(5)).
const (
	subuidPath = "/etc/subuid"
	subgidPath = "/etc/subgid"
)

const lastID = 1<<32 - 2

type idRange struct {
	Start, Count int64
}

// parseSubIDs returns the ranges that /etc/subuid or /etc/subgid gives to a
// user, in the file's order. A line is owner:start:count, its owner a name or
// a number (subuid(5)). Lines that are anything else are none, as for newuidmap.
func parseSubIDs(text, name string, uid int) []idRange {
	var ranges []idRange
	for line := range strings.Lines(text) {
		owner, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		if owner == "" || owner != name && owner != strconv.Itoa(uid) {
			continue
		}
		first, many, _ := strings.Cut(numbers, ":")
		start, err := strconv.ParseInt(first, 10, 64)
		count, err2 := strconv.ParseInt(many, 10, 64)
		if err != nil || err2 != nil || start < 0 || count < 1 || start > lastID || count > lastID+1-start {
			continue
		}
		ranges = append(ranges, idRange{start, count})
	}
	return ranges
}
