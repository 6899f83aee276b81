package broker

import (
	"os"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunRole(map[string]func([]string) int{"loaded-broker": loadedBroker})
	os.Exit(testkit.Main(m))
}
