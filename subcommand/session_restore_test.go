package subcommand

import (
	"bytes"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestSnapshotIsRestored: after a restore of Consul's servers from a snapshot, health-sync
// registers the task again and has one session, whatever the snapshot has of the task; and
// its checks depend on that session.
func TestSnapshotIsRestored(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	for name, actions := range map[string]struct {
		before, after func(*boundTask) *testkit.Process // the snapshot
	}{
		"of the running task": {(*boundTask).healthSync, nil},
		"with a session that has ended since": {(*boundTask).healthSync, func(k *boundTask) *testkit.Process {
			if _, err := k.admin.Session().Destroy(k.sessions()[0], nil); err != nil {
				k.t.Fatal(err)
			}
			testkit.Within(k.t, bound+slack, "the session is replaced", func() bool { return k.inTraffic() == 2 })
			return nil
		}},
		"without the task": {func(k *boundTask) *testkit.Process {
			for _, id := range []string{k.w.ID, k.w.Proxy.ID} {
				if _, err := k.admin.Catalog().Deregister(&api.CatalogDeregistration{Node: boundCluster, ServiceID: id},
					nil); err != nil {
					k.t.Fatal(err)
				}
			}
			return nil
		}, (*boundTask).healthSync},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newBoundTask(t, newest(t), "web", sessionRule)
			p := actions.before(k)
			snapshot := k.save()
			if actions.after != nil {
				if started := actions.after(k); started != nil {
					p = started
				}
			}
			if err := k.admin.Snapshot().Restore(nil, bytes.NewReader(snapshot)); err != nil {
				t.Fatal(err)
			}
			testkit.Within(t, 2*bound, "the task is in traffic, with one session", func() bool {
				return k.inTraffic() == 2 && len(k.sessions()) == 1 &&
					slices.Equal(k.sessionChecks(), []string{api.HealthPassing, api.HealthPassing})
			})
			p.Signal(syscall.SIGKILL)
			testkit.Within(t, bound+slack, "the task has left traffic", func() bool { return k.inTraffic() == 0 })
		})
	}
}

// save takes a snapshot of Consul's servers.
func (k *boundTask) save() []byte {
	k.t.Helper()
	r, _, err := k.admin.Snapshot().Save(nil)
	if err != nil {
		k.t.Fatal(err)
	}
	defer r.Close()
	snapshot, err := io.ReadAll(r)
	if err != nil {
		k.t.Fatal(err)
	}
	return snapshot
}
