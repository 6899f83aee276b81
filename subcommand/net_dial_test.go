package subcommand

import (
	"net"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestNetDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed := testkit.ClosedAddress(t)
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"listener", []string{l.Addr().String()}, 0},
		{"listener with a timeout", []string{"-timeout", "1m", l.Addr().String()}, 0},
		{"closed", []string{closed}, 2},
		{"malformed", []string{"no-port"}, 2},
		{"too late", []string{"-timeout", "1ns", l.Addr().String()}, 2},
		{"no argument", nil, 1},
		{"two arguments", []string{"127.0.0.1:1", "127.0.0.1:2"}, 1},
		{"bad timeout", []string{"-timeout", "0s", l.Addr().String()}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exits(t, consulECS(t, nil, append([]string{"net-dial"}, c.args...)...), c.want)
		})
	}
}
