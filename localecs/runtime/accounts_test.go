package runtime

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/host"
)

// onlyRoot returns what a user without sub-IDs has: ID 0, and that is himself.
func onlyRoot() host.IDs {
	one := []host.Extent{{Inside: 0, Outside: 1000, Count: 1}}
	return host.IDs{UIDs: one, GIDs: one}
}

func everyone() host.IDs {
	all := []host.Extent{{Inside: 0, Outside: 0, Count: 1 << 32}}
	return host.IDs{UIDs: all, GIDs: all, Groups: true, Initial: true}
}

func TestAccountsFitTheIDsThatExist(t *testing.T) {
	t.Parallel()
	const remedy = ": more IDs take the programs newuidmap and newgidmap (package uidmap) and a range for the user in /etc/subuid and /etc/subgid"
	dirs := func() []Dir { return []Dir{{Path: "/work", UID: 5995, GID: 5}, {Path: "/root's"}} }
	for name, tc := range map[string]struct {
		ids      host.IDs
		uid, gid int
		want     stageConfig
		warnings []string
	}{
		"root of the host": {everyone(), 5995, 0, stageConfig{UID: 5995, Scratch: dirs()}, nil},
		"one ID": {onlyRoot(), 5995, 0, stageConfig{
			KeepGroups: true, NoTTYGroup: true, NoCapabilities: true,
			Scratch: []Dir{{Path: "/work"}, {Path: "/root's"}},
		}, []string{
			"proxy runs as 0:0 instead of 5995:0" + remedy,
			"/work belongs to 0:0 instead of 5995:5" + remedy,
		}},
		// A root that loses its group only stays root, with what root may do.
		"one ID, root with a group": {onlyRoot(), 0, 7, stageConfig{
			KeepGroups: true, NoTTYGroup: true, Scratch: []Dir{{Path: "/work"}, {Path: "/root's"}},
		}, []string{
			"proxy runs as 0:0 instead of 0:7" + remedy,
			"/work belongs to 0:0 instead of 5995:5" + remedy,
		}},
	} {
		c := stageConfig{UID: tc.uid, GID: tc.gid, Scratch: dirs()}
		warnings := fit("web/proxy", &c, tc.ids)
		if d := cmp.Diff(tc.want, c); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(tc.warnings, warnings); d != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", name, d)
		}
	}
}

// The image that a definition names is used by other tasks as well.
func TestAccountsDoNotChangeTheImage(t *testing.T) {
	t.Parallel()
	i := Image{Name: "i", Volumes: []Dir{{Path: "/v", UID: 8}}}
	r := &Runtime{ids: onlyRoot()}
	c, warnings, err := r.config(Spec{Name: "app", Image: i, Args: []string{"x"}})
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "owner of the volume", c.Scratch[0].UID, 0)
	testkit.Equal(t, "warnings", len(warnings), 1)
	testkit.Equal(t, "owner in the image", i.Volumes[0].UID, 8)
}

func TestVolumeOfANonexistentOwner(t *testing.T) {
	t.Parallel()
	own := host.IDs{
		UIDs: []host.Extent{{Inside: 0, Outside: 0, Count: 1}, {Inside: int64(os.Getuid()), Outside: 0, Count: 1}},
		GIDs: []host.Extent{{Inside: 0, Outside: 0, Count: 1}, {Inside: int64(os.Getgid()), Outside: 0, Count: 1}},
	}
	if os.Getuid() != 0 {
		t.Skip("the owner that takes the hierarchy is root")
	}
	dir := t.TempDir()
	i := Image{Volumes: []Dir{{Path: "/data", UID: 5995, GID: 5996, Mode: 0o770}}}
	warnings, err := claim(i, []Mount{{Source: dir, Target: "/data"}}, own)
	testkit.ErrorContains(t, err, "")
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "/data belongs to 0:0 instead of 5995:5996: more ID") {
		t.Errorf("warnings %q, want one about the owner of /data", warnings)
	}
	st, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	testkit.Equal(t, "owner of the volume", [2]uint32{sys.Uid, sys.Gid}, [2]uint32{})
	testkit.Equal(t, "mode of the volume", st.Mode().Perm(), 0o770)
}

// CAP_SYS_RESOURCE of a user namespace raises no limit.
func TestHardLimitsInAUserNamespace(t *testing.T) {
	t.Parallel()
	highest, err := ownHardLimits(onlyRoot())
	if err != nil {
		t.Fatal(err)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	if got, err := highest(unix.RLIMIT_NOFILE); err != nil || got != own.Max {
		t.Errorf("%d, %v, want %d", got, err, own.Max)
	}
}
