package broker

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// consul is the server of the tests of KVStore.
var consul *testkit.Consul

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"loaded-broker": loadedBroker})
	var err error
	if consul, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, consul.Stop))
}
