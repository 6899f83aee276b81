package runtime

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/taskdef"
)

// defaultCapabilities returns a container's without settings: the usual set of container engines
// without CAP_MKNOD, since no device list limits what it would give access to.
func defaultCapabilities() map[string]int {
	return map[string]int{
		"CHOWN": unix.CAP_CHOWN, "DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "FSETID": unix.CAP_FSETID, "FOWNER": unix.CAP_FOWNER,
		"NET_RAW": unix.CAP_NET_RAW, "SETGID": unix.CAP_SETGID, "SETUID": unix.CAP_SETUID, "SETFCAP": unix.CAP_SETFCAP,
		"SETPCAP": unix.CAP_SETPCAP, "NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "SYS_CHROOT": unix.CAP_SYS_CHROOT,
		"KILL": unix.CAP_KILL, "AUDIT_WRITE": unix.CAP_AUDIT_WRITE,
	}
}

// capabilities returns the set that a program may have, a bit each: the default ones without those
// that the definition drops, and those that it adds, as far as a container may have them here.
// NET_ADMIN is for a network of the task's own only.
func capabilities(c *taskdef.Capabilities, ownNetwork bool) uint64 {
	known := defaultCapabilities()
	var set uint64
	for name, bit := range known {
		if c == nil || !slices.Contains(c.Drop, "ALL") && !slices.Contains(c.Drop, name) {
			set |= 1 << bit
		}
	}
	if c == nil {
		return set
	}
	if ownNetwork {
		known["NET_ADMIN"] = unix.CAP_NET_ADMIN
	}
	for _, name := range c.Add {
		if bit, is := known[name]; is {
			set |= 1 << bit
		}
	}
	return set
}

// otherCapabilities reports whether a definition adds what no container has here.
func otherCapabilities(c *taskdef.Capabilities) bool {
	known := defaultCapabilities()
	return c != nil && slices.ContainsFunc(c.Add, func(name string) bool {
		_, is := known[name]
		return !is && name != "NET_ADMIN"
	})
}
