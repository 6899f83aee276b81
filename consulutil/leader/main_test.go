package leader

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
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

// candidate is the lock of one of several processes.
func candidate(t *testing.T, cluster, name string, wrap func(http.RoundTripper) http.RoundTripper) *Lock {
	t.Helper()
	return newLock(t, Options{
		Consul: consulutil.Options{Address: secured.Require(t).HTTPAddr, Token: secured.Token, Wrap: wrap},
		Key:    keyOf(cluster), Holder: name,
	})
}

func newLock(t *testing.T, o Options) *Lock {
	t.Helper()
	o.KeyRule, o.Session = `key_prefix "consul-ecs/" { policy = "write" }`, "test"
	o.Log = hclog.New(&hclog.LoggerOptions{Output: t.Output()})
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// admin is a client of the whole server.
func admin(t *testing.T) *api.Client {
	t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{Address: secured.Require(t).HTTPAddr, Token: secured.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// uniqueCluster has a lock that no earlier run has delayed.
func uniqueCluster(t *testing.T) string {
	return fmt.Sprintf("arn:aws:ecs:us-west-2:111122223333:cluster/%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
}

// standbyIgnored waits for the lock.
func standbyIgnored(string) error { return nil }

// keyOf is the key of the lock of a cluster.
func keyOf(cluster string) string { return "consul-ecs/test/" + cluster + "/leader" }
