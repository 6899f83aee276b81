package eni_test

import (
	"net/netip"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/network/eni"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ region, ip, want string }{
		{"us-east-1", "10.42.0.5", "ip-10-42-0-5.ec2.internal"},
		{"us-west-2", "10.0.255.1", "ip-10-0-255-1.us-west-2.compute.internal"},
		{"us-west-2", "fd00::5", ""},
	} {
		if got := eni.PrivateDNSName(netip.MustParseAddr(tt.ip), eni.SearchDomain(tt.region)); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.ip, tt.region, got, tt.want)
		}
	}
	if got := eni.MAC(netip.MustParseAddr("10.42.0.255")).String(); got != "0a:ec:0a:2a:00:ff" {
		t.Error(got)
	}
}
