package consulutil

import (
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// candidate returns the lock of one of several processes.
func candidate(t *testing.T, cluster, name string, wrap func(http.RoundTripper) http.RoundTripper) *Lock {
	t.Helper()
	return newLock(t, LockOptions{
		Consul: Options{Address: secured.Require(t).HTTPAddr, Token: secured.Token, Wrap: wrap},
		Key:    keyOf(cluster), Holder: name,
	})
}

func newLock(t *testing.T, o LockOptions) *Lock {
	t.Helper()
	o.KeyRule, o.Session = `key_prefix "consul-ecs/" { policy = "write" }`, "test"
	o.Log = hclog.New(&hclog.LoggerOptions{Output: t.Output()})
	l, err := NewLock(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// standbyIgnored waits for the lock.
func standbyIgnored(string) error { return nil }

// keyOf returns the key of the lock of a cluster.
func keyOf(cluster string) string { return "consul-ecs/test/" + cluster + "/leader" }
