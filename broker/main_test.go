package broker

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// consul is the server of this package's tests of the store.
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
