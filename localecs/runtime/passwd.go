package runtime

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Passwd returns the content of /etc/passwd.
func (i Image) Passwd() string {
	var b strings.Builder
	known := i.accounts()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		a := known[name]
		fmt.Fprintf(&b, "%s:x:%d:%d:%s:%s:/bin/sh\n", name, a.UID, a.GID, name, a.Home)
	}
	return b.String()
}

// Group returns the content of /etc/group: a group per user, of the same name.
func (i Image) Group() string {
	var b strings.Builder
	known := i.accounts()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		fmt.Fprintf(&b, "%s:x:%d:\n", name, known[name].GID)
	}
	return b.String()
}

// Validate returns the first thing in the image that cannot be right.
func (i Image) Validate() error {
	for name, ids := range i.Users {
		if _, err := parseAccount(ids); err != nil {
			return fmt.Errorf("image %q: user %q is %q: want uid or uid:gid", i.Name, name, ids)
		}
	}
	var paths []string
	paths = slices.AppendSeq(paths, maps.Keys(i.Programs))
	paths = slices.AppendSeq(paths, maps.Keys(i.Files))
	for _, d := range i.Volumes {
		paths = append(paths, d.Path)
	}
	if i.WorkingDir != "" {
		paths = append(paths, i.WorkingDir)
	}
	for _, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) == "/" {
			return fmt.Errorf("image %q: path %q: want an absolute path below /", i.Name, p)
		}
	}
	_, err := i.Signal()
	return err
}
