package network

import (
	"flag"
	"io"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestModeFitsItsSubnet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode         Mode
		subnet, want string
	}{
		{AWSVPC, "", ""},
		{"", "10.42.0.0/24", ""},
		{Host, "127.42.0.0/24", ""},
		{Host, "127.1.0.0/16", ""},
		{Host, "", "write subnet 127.42.0.0/24, and its addresses for those of 10.42.0.0/24 in the task definitions"},
		{Host, "10.7.9.17/24", "write subnet 127.7.9.0/24, and its addresses for those of 10.7.9.0/24"},
		{Host, "10.0.1.0/24", "write subnet 127.42.1.0/24"},
		{Host, "127.0.0.0/24", "are the host's own: write one such as 127.42.0.0/24"},
		{Host, "127.0.0.0/8", "from /16 to /28"},
		{Host, "127.42.0.0/30", "from /16 to /28"},
		{AWSVPC, "127.42.0.0/24", "loopback addresses are for -network host: write one such as 10.42.0.0/24"},
	} {
		err := c.mode.CheckSubnet(c.subnet)
		testkit.ErrorContains(t, err, c.want)
	}
}

func TestModeIsAFlag(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"awsvpc": "", "host": "", "bridge": "want awsvpc or host", "": "want awsvpc or host"} {
		var m Mode
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.TextVar(&m, "network", AWSVPC, "")
		if m != AWSVPC {
			t.Errorf("default %q", m)
		}
		err := flags.Parse([]string{"-network", value})
		testkit.ErrorContains(t, err, want)
		if err == nil && string(m) != value {
			t.Errorf("-network %q: %q", value, m)
		}
	}
}
