package shapes_test

import (
	"net/netip"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ region, ip, want string }{
		{"us-east-1", "10.42.0.5", "ip-10-42-0-5.ec2.internal"},
		{"us-west-2", "10.0.255.1", "ip-10-0-255-1.us-west-2.compute.internal"},
		{"us-west-2", "fd00::5", ""},
	} {
		if got := shapes.PrivateDNSName(netip.MustParseAddr(tt.ip), shapes.SearchDomain(tt.region)); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.ip, tt.region, got, tt.want)
		}
	}
	if got := shapes.MAC(netip.MustParseAddr("10.42.0.255")).String(); got != "0a:ec:0a:2a:00:ff" {
		t.Error(got)
	}
}

func TestServiceAddressIsTheLastButOne(t *testing.T) {
	t.Parallel()
	for subnet, want := range map[string]string{
		"10.42.0.0/24": "10.42.0.254", "10.7.5.1/22": "10.7.7.254", "127.42.0.16/28": "127.42.0.30",
		"fd00::/64": "invalid IP",
	} {
		if got := shapes.ServiceAddress(netip.MustParsePrefix(subnet)).String(); got != want {
			t.Errorf("%s: %s, want %s", subnet, got, want)
		}
	}
}
