package controller

import (
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

var secured *testkit.Consul

func TestMain(m *testing.M) {
	var err error
	if secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, secured.Stop))
}

func newLock(t *testing.T, o LockOptions) *consulutil.Lock {
	t.Helper()
	o.Log = hclog.New(&hclog.LoggerOptions{Output: t.Output()})
	l, err := NewLock(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// standbyIgnored waits for the lock.
func standbyIgnored(string) error { return nil }
