package consulutil

import (
	"os"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The servers of this package's tests: with ACLs, and without.
var (
	secured *testkit.Consul
	open    *testkit.Consul
)

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"reaped": reapedRole})
	secured, open = testkit.Servers()
	os.Exit(testkit.Main(m, secured.Stop, open.Stop))
}

// client returns a client of this package for a test server.
func client(t testing.TB, c *testkit.Consul, token string) *api.Client {
	t.Helper()
	c.Require(t)
	return newClient(t, Options{Address: c.HTTPAddr, Token: token})
}

func newClient(t testing.TB, o Options) *api.Client {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
