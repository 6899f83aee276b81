package runtime

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	mountsV1 = `30 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw
35 30 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 30 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	mountsV2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mounts, groups string
		handed         map[string]string // cgroup.subtree_control by file
		want           []hierarchy
	}{
		"version 1, in the root": {
			mounts: mountsV1, groups: "4:memory:/\n2:cpuacct,cpu:/\n0::/\n",
			want: []hierarchy{{memoryV1, "/sys/fs/cgroup/memory"}, {cpuV1, "/sys/fs/cgroup/cpu,cpuacct"}},
		},
		"version 1, in a group": {
			mounts: mountsV1, groups: "4:memory:/jobs/17\n2:cpuacct,cpu:/\n",
			want: []hierarchy{{memoryV1, "/sys/fs/cgroup/memory/jobs/17"}, {cpuV1, "/sys/fs/cgroup/cpu,cpuacct"}},
		},
		"version 1, a container that sees its own part": {
			mounts: "35 30 0:32 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			groups: "4:memory:/docker/1f\n",
			want:   []hierarchy{{memoryV1, "/sys/fs/cgroup/memory"}},
		},
		"version 1, a group that no mount shows": {
			mounts: "35 30 0:32 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			groups: "4:memory:/docker/2e\n",
		},
		"version 2, in a session": {
			mounts: mountsV2, groups: "0::/user.slice/user-1000.slice/session-3.scope\n",
			handed: map[string]string{"/sys/fs/cgroup/user.slice/user-1000.slice/cgroup.subtree_control": "cpu memory pids\n"},
			want:   []hierarchy{{unified, "/sys/fs/cgroup/user.slice/user-1000.slice"}},
		},
		"version 2, in the root": {
			mounts: mountsV2, groups: "0::/\n",
			handed: map[string]string{"/sys/fs/cgroup/cgroup.subtree_control": "memory\n"},
			want:   []hierarchy{{unified, "/sys/fs/cgroup"}},
		},
		"version 2, memory is not handed down": {
			mounts: mountsV2, groups: "0::/a/b\n",
			handed: map[string]string{"/sys/fs/cgroup/a/cgroup.subtree_control": "cpu pids\n"},
		},
		"version 2, a controller whose name begins alike": {
			mounts: mountsV2, groups: "0::/a/b\n",
			handed: map[string]string{"/sys/fs/cgroup/a/cgroup.subtree_control": "memory_plus\n"},
		},
		"nothing mounted":  {groups: "0::/\n"},
		"nothing readable": {mounts: "x\n - \n1 2 3 4 - cgroup2\n", groups: "nonsense\n"},
	} {
		got, err := hostGroups{mounts: c.mounts, groups: c.groups, readFile: func(name string) ([]byte, error) {
			text, ok := c.handed[name]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}}.hierarchies()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (c.want == nil) != errors.Is(err, errNoMemory) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n": 3,
		"low 0\noom 2\noom_kill 1\n":                    1,
		"oom 2\n":                                       0,
		"":                                              0,
	} {
		if got := counter([]byte(text), "oom_kill"); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]uint64{"4096\n": 4096, "max\n": 0, "": 0} {
		if got := counter([]byte(text), ""); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func FuzzPlaces(f *testing.F) {
	f.Add(mountsV1, "4:memory:/jobs/17\n2:cpuacct,cpu:/\n")
	f.Add(mountsV2, "0::/a/b\n")
	f.Fuzz(func(t *testing.T, mounts, groups string) {
		found, err := hostGroups{mounts: mounts, groups: groups, readFile: func(string) ([]byte, error) { return []byte("memory"), nil }}.hierarchies()
		if (err == nil) != (len(found) > 0) {
			t.Errorf("hierarchies %v, error %v", found, err)
		}
	})
}

// A process may be where no groups can be made, and be measured all the same.
func TestCgroupPathsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	none := func(string) ([]byte, error) { return nil, os.ErrNotExist }
	for name, c := range map[string]struct {
		mounts, groups string
		want           []hierarchy
	}{
		"version 1": {mountsV1, "4:memory:/docker/0a\n2:cpuacct,cpu:/docker/0a\n", []hierarchy{{memoryV1, "/sys/fs/cgroup/memory/docker/0a"}, {cpuV1, "/sys/fs/cgroup/cpu,cpuacct/docker/0a"}}},
		"version 2": {mountsV2, "0::/docker/0a\n", []hierarchy{{unified, "/sys/fs/cgroup/docker/0a"}}},
		"neither":   {"", "0::/\n", nil},
	} {
		got, err := hostGroups{mounts: c.mounts, groups: c.groups, readFile: none}.hierarchiesOf()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if g, err := GroupOfProcess(os.Getpid()); err == nil {
		if u := g.Usage(); u.User == 0 && u.Memory == 0 {
			t.Errorf("%+v of this process's group", u)
		}
	}
}
