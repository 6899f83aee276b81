package cleanup

import (
	"fmt"
	"os"
	"sync"
	"testing"

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

// require is the server, or the end of the test.
func require(t testing.TB) secured {
	t.Helper()
	s := server()
	if s.err != nil {
		t.Fatal(fmt.Errorf("start Consul: %w", s.err))
	}
	s.Require(t)
	return s
}
