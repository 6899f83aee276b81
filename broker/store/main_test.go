package store

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// consul is the server of this package's tests.
var consul *testkit.Consul

func TestMain(m *testing.M) {
	var err error
	if consul, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, consul.Stop))
}
