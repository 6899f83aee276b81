package controller

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// secured is a server with ACLs, and logins the auth methods of its tasks. They
// start with the first test that wants them: the model and fuzzing do not.
type secured struct {
	*testkit.Consul
	logins *testkit.Logins
	err    error
}

var server = sync.OnceValue(func() (s secured) {
	removed.at = time.Now()
	if s.Consul, s.err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); s.err == nil && s.Consul != nil {
		s.logins, s.err = testkit.NewLogins(s.Consul, append(agent().Methods, "jwt-of-others")...)
	}
	stop = s.Consul.Stop
	return s
})

var stop = func() {}

func TestMain(m *testing.M) {
	os.Exit(testkit.Main(m, func() { stop() }))
}

// require returns the server, or skips the test.
func require(t testing.TB) secured {
	t.Helper()
	s := server()
	if s.err != nil {
		t.Fatal(fmt.Errorf("start Consul: %w", s.err))
	}
	s.Require(t)
	return s
}

// removed is when Consul last removed nodes; see awaitRemoval.
var removed struct {
	sync.Mutex
	at time.Time
}

// awaitRemoval returns when Consul's next removal of nodes is at least 20 seconds away:
// each minute a leader removes the nodes that have a serfHealth check and are no members,
// as the nodes of these tests. Such a node shows when it has done so.
func (s secured) awaitRemoval(t testing.TB) {
	t.Helper()
	removed.Lock()
	defer removed.Unlock()
	if time.Since(removed.at) < 40*time.Second {
		return
	}
	client, err := consulutil.NewClient(consulutil.Options{Address: s.HTTPAddr, Token: s.Token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Catalog().Register(&api.CatalogRegistration{Node: "no-member", Address: "10.0.0.9",
		Check: &api.AgentCheck{Node: "no-member", CheckID: "serfHealth", Status: api.HealthPassing}}, nil); err != nil {
		t.Fatal(err)
	}
	look := &api.QueryOptions{WaitTime: 5 * time.Second}
	testkit.Within(t, 2*time.Minute, "Consul removes a node that is no member", func() bool {
		node, meta, err := client.Catalog().Node("no-member", look)
		if err == nil {
			look.WaitIndex = meta.LastIndex
		}
		return err == nil && node == nil
	})
	removed.at = time.Now()
}
