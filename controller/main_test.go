package controller

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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

// uniqueCluster has a lock that no earlier run has delayed.
func uniqueCluster(t *testing.T) string {
	return fmt.Sprintf("arn:aws:ecs:us-west-2:111122223333:cluster/%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
}

// standbyIgnored waits for the lock.
func standbyIgnored(string) error { return nil }
