package subcommand

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestTaskWithoutMetadata: while only the metadata endpoint is away, the task stays in traffic, and an
// application that dies meanwhile is noticed.
func TestTaskWithoutMetadata(t *testing.T) {
	t.Parallel()
	o, away := testkit.ConsulOptions{}, 5*time.Second
	if !testing.Short() { // with a session, which ends when it is not renewed for 30 s
		o.Newest, away = true, 100*time.Second
	}
	m := newFrontMesh(t, o)
	m.permitSessions()
	front := m.Fronts(m.consul, 1)
	k := m.task(true, addresses(front)...)
	stop := k.serveApplication()
	k.healthSync()
	k.metadata.does(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	for begin := time.Now(); time.Since(begin) < away; <-time.After(50 * time.Millisecond) {
		if !k.passes() {
			t.Fatalf("out of traffic %s after the metadata endpoint went away", time.Since(begin))
		}
	}
	stop()
	meet(t, aim{2 * time.Second, "the check of an application that died is critical", func() bool {
		return k.status() == api.HealthCritical
	}})
	k.container("RUNNING", "HEALTHY")
	k.serveApplication()
	meet(t, aim{2 * time.Second, "the task passes when there are metadata again", k.passes})
}
