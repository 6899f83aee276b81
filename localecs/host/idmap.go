package host

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Remedy describes how a user who is not root gets more IDs.
const Remedy = "more IDs take the programs newuidmap and newgidmap (package uidmap) and a range for the user in /etc/subuid and /etc/subgid"

// initialInode is the host's user namespace, in every kernel (PROC_USER_INIT_INO
// of linux/proc_ns.h). A map of all IDs is not enough: root can make such a
// namespace.
const initialInode = 0xEFFFFFFD

// Extent is a line of uid_map or gid_map: Count IDs from Inside on are, outside
// of the user namespace, those from Outside on.
type Extent struct {
	Inside, Outside, Count int64
}

// IDs are the user and group IDs that exist.
type IDs struct {
	UIDs, GIDs []Extent
	// Groups: supplementary groups may be set.
	Groups bool
	// Initial: this is no user namespace but the host's, where capabilities
	// count for everything.
	Initial bool
}

// CurrentIDs returns the IDs of the calling process.
func CurrentIDs() (IDs, error) {
	var i IDs
	for path, to := range map[string]*[]Extent{"/proc/self/uid_map": &i.UIDs, "/proc/self/gid_map": &i.GIDs} {
		b, err := os.ReadFile(path)
		if err != nil {
			return IDs{}, fmt.Errorf("read own IDs: %w", err)
		}
		if *to, err = parse(string(b)); err != nil {
			return IDs{}, fmt.Errorf("read own IDs: %s: %w", path, err)
		}
	}
	b, err := os.ReadFile("/proc/self/setgroups")
	if err != nil {
		return IDs{}, fmt.Errorf("read own IDs: %w", err)
	}
	i.Groups = strings.TrimSpace(string(b)) != "deny"
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &st); err != nil {
		return IDs{}, fmt.Errorf("read own user namespace: %w", err)
	}
	i.Initial = st.Ino == initialInode
	return i, nil
}

// parse reads a uid_map or a gid_map.
func parse(text string) ([]Extent, error) {
	var extents []Extent
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %q: want three numbers", line)
		}
		var n [3]int64
		for i, f := range fields {
			v, err := strconv.ParseUint(f, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("line %q: %w", line, err)
			}
			n[i] = int64(v)
		}
		extents = append(extents, Extent{Inside: n[0], Outside: n[1], Count: n[2]})
	}
	return extents, nil
}

// HasGID reports whether a group ID exists.
func (i IDs) HasGID(gid int) bool { return has(i.GIDs, gid) }

func has(extents []Extent, id int) bool {
	return slices.ContainsFunc(extents, func(e Extent) bool {
		return int64(id) >= e.Inside && int64(id)-e.Inside < e.Count
	})
}

// Fit returns the nearest that exists: root's ID in place of one that does not.
// ok is false if it replaced one.
func (i IDs) Fit(uid, gid int) (u, g int, ok bool) {
	u, g = uid, gid
	if !has(i.UIDs, uid) {
		u = 0
	}
	if !i.HasGID(gid) {
		g = 0
	}
	return u, g, u == uid && g == gid
}

// The files that assign subordinate IDs to users (subuid(5), subgid(5)).
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
// a number (subuid(5)). Other lines are ignored, as newuidmap does.
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
