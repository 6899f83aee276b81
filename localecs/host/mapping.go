package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

const maxExtents = 340

// caller is the user who requests a user namespace, and the means to create it.
type caller struct {
	UID, GID int
	// Name is empty when the number has none.
	Name string
	// SetIDs: this process may map any ID, those of Own: root without other
	// capabilities, as in a container, or the root of a user namespace.
	SetIDs bool
	Own    IDs
	// UIDs and GIDs are the ranges of /etc/subuid and /etc/subgid.
	UIDs, GIDs []idRange
	// NewUIDMap and NewGIDMap are programs; empty where there is none.
	NewUIDMap, NewGIDMap string
}

type mapping struct {
	UIDs, GIDs []Extent
	// ByHelpers: newuidmap and newgidmap write it, this process may not.
	ByHelpers bool
	// Groups: supplementary groups may be set inside. With helpers they may.
	Groups bool
	// Lacks is why the user's own ID is the only one; empty when it is not.
	Lacks string
}

func choose(c caller) mapping {
	if c.SetIDs {
		return mapping{UIDs: same(c.Own.UIDs), GIDs: same(c.Own.GIDs), Groups: c.Own.Groups}
	}
	owner := cmp.Or(c.Name, fmt.Sprint(c.UID))
	var lacks []string
	for _, tool := range []struct{ name, path string }{{"newuidmap", c.NewUIDMap}, {"newgidmap", c.NewGIDMap}} {
		if tool.path == "" {
			lacks = append(lacks, tool.name+" is not installed (package uidmap)")
		}
	}
	m := mapping{UIDs: fill(c.UID, c.UIDs), GIDs: fill(c.GID, c.GIDs), ByHelpers: true}
	for _, file := range []struct {
		path string
		got  []Extent
	}{{subuidPath, m.UIDs}, {subgidPath, m.GIDs}} {
		if len(file.got) == 1 {
			lacks = append(lacks, fmt.Sprintf(`%s has no line for the user (such as "%s:100000:65536")`, file.path, owner))
		}
	}
	if len(lacks) > 0 {
		return single(c, strings.Join(lacks, ", "))
	}
	return m
}

// single returns what every user may have: root inside is the user outside, and no other user exists.
func single(c caller, lacks string) mapping {
	return mapping{UIDs: fill(c.UID, nil), GIDs: fill(c.GID, nil), Lacks: lacks}
}

func same(own []Extent) []Extent {
	extents := slices.Clone(own)
	for i := range extents {
		extents[i].Outside = extents[i].Inside
	}
	return extents
}

// fill maps 0 to the user and 1 and up to the ranges. The kernel takes no ID twice: a range that has one is left out.
func fill(own int, ranges []idRange) []Extent {
	extents := []Extent{{Inside: 0, Outside: int64(own), Count: 1}}
	next := int64(1)
	for _, r := range ranges {
		taken := slices.ContainsFunc(extents, func(e Extent) bool {
			return r.Start < e.Outside+e.Count && e.Outside < r.Start+r.Count
		})
		if taken || len(extents) == maxExtents || next+r.Count > lastID+1 {
			continue
		}
		extents = append(extents, Extent{Inside: next, Outside: r.Start, Count: r.Count})
		next += r.Count
	}
	return extents
}

func helperArgs(pid int, extents []Extent) []string {
	args := []string{fmt.Sprint(pid)}
	for _, e := range extents {
		args = append(args, fmt.Sprint(e.Inside), fmt.Sprint(e.Outside), fmt.Sprint(e.Count))
	}
	return args
}

func sysMap(extents []Extent) []syscall.SysProcIDMap {
	var m []syscall.SysProcIDMap
	for _, e := range extents {
		m = append(m, syscall.SysProcIDMap{ContainerID: int(e.Inside), HostID: int(e.Outside), Size: int(e.Count)})
	}
	return m
}

// describe returns a map in readable form: "0=1000 1-65536=100000-165535".
func describe(extents []Extent) string {
	var words []string
	for _, e := range extents {
		words = append(words, span(e.Inside, e.Count)+"="+span(e.Outside, e.Count))
	}
	return strings.Join(words, " ")
}

func span(first, count int64) string {
	if count == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, first+count-1)
}
