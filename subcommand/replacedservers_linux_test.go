package subcommand

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/servers"
)

// busy is what a limit gets on top, since the machine of a test may be busy. The limits are those of
// docs/SCALE.md.
const busy = 5 * time.Second

// aim is what must hold within a limit after an event.
type aim struct {
	limit time.Duration
	what  string
	met   func() bool
}

// meet waits until all aims are met, and logs when each was.
func meet(t *testing.T, aims ...aim) {
	t.Helper()
	begin := time.Now()
	for len(aims) > 0 {
		var open []aim
		for _, a := range aims {
			took := time.Since(begin)
			switch {
			case a.met():
				t.Logf("%s: after %s, want %s at most", a.what, took.Round(10*time.Millisecond), a.limit)
			case took > a.limit+busy:
				t.Errorf("%s: not within %s and %s more", a.what, a.limit, busy)
			default:
				open = append(open, a)
			}
		}
		aims = open
		<-time.After(10 * time.Millisecond)
	}
}

// TestTaskFindsReplacedServers: all servers are replaced at one moment, and their addresses drop packets.
func TestTaskFindsReplacedServers(t *testing.T) {
	t.Parallel()
	m := newFrontMesh(t, testkit.ConsulOptions{})
	sizes := []int{2, 3, 5, 7}
	if testing.Short() {
		sizes = []int{5}
	}
	for _, n := range sizes {
		for _, watch := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d servers, watch %t", n, watch), func(t *testing.T) {
				t.Parallel()
				testReplacement(m.beside(t), n, watch)
			})
		}
	}
}

func testReplacement(m *vpcMesh, n int, watch bool) {
	old, replacement := m.Fronts(m.consul, n), m.Fronts(m.consul, n)
	running, ending := m.task(watch, addresses(old)...), m.task(watch, addresses(old)...)
	running.envoy()
	running.healthSync()
	stopping := ending.healthSync()
	testkit.Eventually(m.t, "envoy is live", running.live)
	accessor := ending.accessor()

	for _, f := range old {
		f.Drop()
	}
	running.know(addresses(replacement)...)
	ending.know(addresses(replacement)...)
	running.container("RUNNING", "UNHEALTHY")
	stopping.Signal(syscall.SIGTERM)
	meet(m.t,
		aim{10 * time.Second, "the first request at a new server", func() bool {
			return arrived(replacement, func(f *servers.Front) int { return f.Requests(running.host) })
		}},
		aim{11 * time.Second, "the check is critical", func() bool { return running.status() == api.HealthCritical }},
		aim{10 * time.Second, "the first stream at a new server", func() bool {
			return arrived(replacement, func(f *servers.Front) int { return f.Streams(running.host) })
		}},
		aim{10 * time.Second, "the check of the ending task is critical", func() bool {
			return ending.status() == api.HealthCritical
		}},
	)
	ending.container("STOPPED", "UNHEALTHY")
	exits(m.t, stopping, 0)
	if got := ending.status(); got != "" {
		m.t.Errorf("a check is left: %s", got)
	}
	if _, _, err := m.admin.ACL().TokenRead(accessor, nil); err == nil {
		m.t.Error("the task's token was not logged out")
	}
}

func addresses(fronts []*servers.Front) []string {
	var all []string
	for _, f := range fronts {
		all = append(all, f.IP.String())
	}
	return all
}

func arrived(fronts []*servers.Front, count func(*servers.Front) int) bool {
	for _, f := range fronts {
		if count(f) > 0 {
			return true
		}
	}
	return false
}
