package network

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressingOfATask(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		subnet, region, ip               string
		cidr, gateway, resolver, private string
		hosts, resolv, mac               string
	}{
		{
			"", "", "10.42.0.5",
			"10.42.0.0/24", "10.42.0.1", "10.42.0.2", "ip-10-42-0-5.us-west-2.compute.internal",
			"127.0.0.1 localhost\n10.42.0.5 ip-10-42-0-5.us-west-2.compute.internal\n",
			"nameserver 10.42.0.2\nsearch us-west-2.compute.internal\n", "0a:ec:0a:2a:00:05",
		},
		{
			"10.9.77.3/16", "us-east-1", "10.9.255.20",
			"10.9.0.0/16", "10.9.0.1", "10.9.0.2", "ip-10-9-255-20.ec2.internal",
			"127.0.0.1 localhost\n10.9.255.20 ip-10-9-255-20.ec2.internal\n",
			"nameserver 10.9.0.2\nsearch ec2.internal\n", "0a:ec:0a:09:ff:14",
		},
	} {
		p, err := newPlan(Options{Subnet: tc.subnet, Region: tc.region})
		if err != nil {
			t.Fatal(err)
		}
		a := p.addressing(netip.MustParseAddr(tc.ip))
		for what, pair := range map[string][2]string{
			"CIDR":           {a.CIDR.String(), tc.cidr},
			"Gateway":        {a.Gateway.String(), tc.gateway},
			"Resolver":       {a.Resolver.String(), tc.resolver},
			"PrivateDNSName": {a.PrivateDNSName, tc.private},
			"Hosts":          {a.Hosts(), tc.hosts},
			"ResolvConf":     {a.ResolvConf(), tc.resolv},
			"MAC":            {a.MAC.String(), tc.mac},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s of %s in %q: %q, want %q", what, tc.ip, tc.subnet, pair[0], pair[1])
			}
		}
	}
}

func TestSubnetIsChecked(t *testing.T) {
	t.Parallel()
	for _, subnet := range []string{"10.42.0.0", "10.42.0.0/33", "fd00::/64", "10.42.0.0/29", "10.0.0.0/8", "nonsense/24"} {
		if _, err := New(Options{Subnet: subnet}); err == nil || !strings.Contains(err.Error(), subnet) {
			t.Errorf("New with subnet %q: %v", subnet, err)
		}
	}
}
