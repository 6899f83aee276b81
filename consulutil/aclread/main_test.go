package aclread

import (
	"os"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// secured is the server of this package's tests.
var secured *testkit.Consul

func TestMain(m *testing.M) {
	var open *testkit.Consul
	secured, open = testkit.Servers()
	open.Stop()
	os.Exit(testkit.Main(m, secured.Stop))
}

// client is one with a token; empty is the anonymous one.
func client(t testing.TB, token string) *api.Client {
	t.Helper()
	secured.Require(t)
	c, err := consulutil.NewClient(consulutil.Options{Address: secured.HTTPAddr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
