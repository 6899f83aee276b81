package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestMountsTakeThoseOfOthersFirst(t *testing.T) {
	t.Parallel()
	yes := true
	app := taskdef.Container{Name: "app", MountPoints: []taskdef.MountPoint{{SourceVolume: "own", ContainerPath: "/a"}},
		VolumesFrom: []taskdef.VolumeFrom{{SourceContainer: "side", ReadOnly: &yes}}}
	side := taskdef.Container{Name: "side", MountPoints: []taskdef.MountPoint{{SourceVolume: "shared", ContainerPath: "/a"}}}
	def := &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{app, side}}
	got := cluster.Mounts(def, app, map[string]string{"own": "/v/own", "shared": "/v/shared"})
	want := []runtime.Mount{{Source: "/v/shared", Target: "/a", ReadOnly: true}, {Source: "/v/own", Target: "/a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUlimitsHaveFargatesWhereThereIsNone(t *testing.T) {
	t.Parallel()
	core := taskdef.Ulimit{Name: "core", SoftLimit: 1, HardLimit: 2}
	nofile := taskdef.Ulimit{Name: "nofile", SoftLimit: 3, HardLimit: 4}
	for name, c := range map[string]struct {
		limits []taskdef.Ulimit
		want   []runtime.Ulimit
	}{
		"none":  {want: []runtime.Ulimit{{Name: "nofile", Soft: 65535, Hard: 65535}}},
		"other": {[]taskdef.Ulimit{core}, []runtime.Ulimit{{Name: "nofile", Soft: 65535, Hard: 65535}, {Name: "core", Soft: 1, Hard: 2}}},
		"own":   {[]taskdef.Ulimit{nofile}, []runtime.Ulimit{{Name: "nofile", Soft: 3, Hard: 4}}},
	} {
		if diff := cmp.Diff(c.want, cluster.Ulimits(taskdef.Container{Ulimits: c.limits})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, want []string }{
		"CMD":       {[]string{"CMD", "a", "b"}, []string{"a", "b"}},
		"CMD-SHELL": {[]string{"CMD-SHELL", "a b"}, []string{"/bin/sh", "-c", "a b"}},
		"bare":      {[]string{"a", "b"}, []string{"a", "b"}},
	} {
		if diff := cmp.Diff(c.want, cluster.Probe(c.command)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
