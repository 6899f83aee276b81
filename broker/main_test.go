package broker

import (
	"os"
	"sync"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// consul is the server of the tests of KVStore. It starts with the first of them: fuzzing
// needs none. See startedConsul.
var consul = sync.OnceValues(func() (*testkit.Consul, error) {
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err == nil {
		stop = c.Stop
	}
	return c, err
})

var stop = func() {}

func startedConsul(t testing.TB) *testkit.Consul {
	t.Helper()
	c, err := consul()
	if err != nil {
		t.Fatal(err)
	}
	return c.Require(t)
}

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"loaded-broker": loadedBroker})
	os.Exit(testkit.Main(m, func() { stop() }))
}
