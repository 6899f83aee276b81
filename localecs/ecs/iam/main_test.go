package iam_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// server is the real Consul of this package's tests; nil without a binary.
var server *testkit.Consul

func TestMain(m *testing.M) {
	var err error
	if server, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testkit.Main(m, server.Stop))
}
