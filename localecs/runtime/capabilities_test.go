package runtime

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/taskdef"
)

func TestCapabilitiesOfAContainer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		settings   *taskdef.Capabilities
		ownNetwork bool
		has, lacks []int
	}{
		{"default", nil, true, []int{unix.CAP_CHOWN, unix.CAP_NET_RAW}, []int{unix.CAP_MKNOD, unix.CAP_NET_ADMIN}},
		{"none", &taskdef.Capabilities{Drop: []string{"ALL"}}, true, nil, []int{unix.CAP_CHOWN, unix.CAP_KILL, unix.CAP_NET_RAW}},
		{"all but one", &taskdef.Capabilities{Drop: []string{"NET_RAW"}}, true, []int{unix.CAP_CHOWN}, []int{unix.CAP_NET_RAW}},
		{"added ones alone", &taskdef.Capabilities{Add: []string{"CHOWN", "NET_ADMIN"}, Drop: []string{"ALL"}}, true, []int{unix.CAP_CHOWN, unix.CAP_NET_ADMIN}, []int{unix.CAP_KILL}},
		{"network of the host", &taskdef.Capabilities{Add: []string{"NET_ADMIN"}}, false, []int{unix.CAP_CHOWN}, []int{unix.CAP_NET_ADMIN}},
		{"what nothing has here", &taskdef.Capabilities{Add: []string{"SYS_PTRACE"}}, true, []int{unix.CAP_CHOWN}, []int{unix.CAP_SYS_PTRACE}},
	} {
		set := capabilities(tt.settings, tt.ownNetwork)
		absent := func(bit int) bool { return set&(1<<bit) == 0 }
		if slices.ContainsFunc(tt.has, absent) {
			t.Errorf("%s: %x lacks one of %v", tt.name, set, tt.has)
		}
		if !slices.Equal(slices.DeleteFunc(slices.Clone(tt.lacks), func(bit int) bool { return !absent(bit) }), tt.lacks) {
			t.Errorf("%s: %x has one of %v", tt.name, set, tt.lacks)
		}
	}
}
