package cleanup

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// secured is a server with ACLs, and logins its auth methods of tasks.
var (
	secured *testkit.Consul
	logins  *testkit.Logins
)

func TestMain(m *testing.M) {
	var err error
	if secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err == nil && secured != nil {
		logins, err = testkit.NewLogins(secured, append(agent().Methods, "jwt-of-others")...)
	}
	if err != nil {
		secured.Stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, secured.Stop))
}
