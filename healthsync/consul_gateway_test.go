package healthsync_test

import (
	"net"
	"testing"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestGatewayLeavesTrafficAtTheEnd: in the servers' catalog, with the rights of its
// login. A restarted container puts it back.
func TestGatewayLeavesTrafficAtTheEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			c.Close()
		}
	}()
	k := newTaskOf(t, secured.Require(t), secured.HTTPAddr, &config.Config{Gateway: &config.Gateway{
		Kind: "mesh-gateway", Name: "gateway-end",
		LANAddress: &config.Address{Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port},
	}})
	inTraffic := func() bool {
		passing, _, err := k.management.Health().Service(k.w.Name, "", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(passing) == 1
	}
	for range 2 {
		k.start()
		testkit.Eventually(t, "the gateway is in traffic", inTraffic)
		if _, err := k.term(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the gateway is out of traffic", func() bool { return !inTraffic() })
		if tokenExists(t, k.management, k.token) {
			t.Error("its token was not logged out")
		}
		k.token = k.newToken("service-token")
	}
}
