package dockerengine

import (
	"os"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunRole(Roles())
	os.Exit(m.Run())
}

// TestNetworks: containers on a network of the user's find each other by name,
// by a link-local address of choice, and by sharing a namespace.
func TestNetworks(t *testing.T) {
	e := Start(t)
	image := e.Image(t, "hello", map[string]string{"/hello": testkit.Programs(t) + "/hello"}, nil)
	network := e.Run(t, "network", "create", "--label", e.ID, "--subnet=169.254.170.0/24", e.ID+"-tasks")
	run := []string{
		"run", "-d", "--label", e.ID, "--network", network, "--ip", "169.254.170.2", "--network-alias", "api",
	}
	server := e.Run(t, append(run, image, "/hello", "api", "0.0.0.0:80")...)

	for name, url := range map[string]string{
		"by name":              "http://api/",
		"by address":           "http://169.254.170.2/",
		"from beside the api":  "http://127.0.0.1/",
		"by the other's alias": "http://api:80/",
	} {
		t.Run(name, func(t *testing.T) {
			in := network
			if strings.Contains(name, "beside") {
				in = "container:" + server
			}
			testkit.Eventually(t, url+" answers", func() bool {
				_, code := e.Try("run", "--rm", "--init", "--label", e.ID, "--network", in, image, "/hello", "get", url)
				return code == 0
			})
		})
	}
}
