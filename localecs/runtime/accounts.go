package runtime

import (
	"fmt"
	"path"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// ttyGroup owns pseudo-terminals.
const ttyGroup = 5

// fit replaces users and groups that do not exist here, as for a user who is
// not root. A program that was to run as another user than root has root's
// number then, and none of root's capabilities.
func fit(container string, c *stageConfig, ids host.IDs) (warnings []string) {
	c.KeepGroups, c.NoTTYGroup = !ids.Groups, !ids.HasGID(ttyGroup)
	uid, gid, ok := ids.Fit(c.UID, c.GID)
	if !ok {
		warnings = append(warnings, fmt.Sprintf("%s runs as %s instead of %s: %s", path.Base(container), account(uid, gid), account(c.UID, c.GID), host.Remedy))
		c.NoCapabilities = uid != c.UID
		c.UID, c.GID = uid, gid
	}
	for i, d := range c.Scratch {
		c.Scratch[i], warnings = fitOwner(d, ids, warnings)
	}
	return warnings
}

// fitOwner gives a directory an owner that exists.
func fitOwner(d Dir, ids host.IDs, warnings []string) (Dir, []string) {
	uid, gid, ok := ids.Fit(d.UID, d.GID)
	if !ok {
		warnings = append(warnings, fmt.Sprintf("%s belongs to %s instead of %s: %s", d.Path, account(uid, gid), account(d.UID, d.GID), host.Remedy))
		d.UID, d.GID = uid, gid
	}
	return d, warnings
}

func account(uid, gid int) string { return fmt.Sprintf("%d:%d", uid, gid) }
