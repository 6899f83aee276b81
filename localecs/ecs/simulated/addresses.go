package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// DefaultSubnet has room for 65,531 tasks.
const DefaultSubnet = "10.42.0.0/16"

// reserved are the addresses at a subnet's beginning that AWS keeps for itself.
const reserved = 4

var errNoAddress = errors.New("no free address in the subnet: stop a task or take a larger subnet")

// addresses are those of a subnet. One that is given back rests as long as
// others are left.
type addresses struct {
	subnet netip.Prefix
	domain string
	next   netip.Addr
	free   []*controlplane.Network
}

func newAddresses(subnet, region string) (*addresses, error) {
	if subnet == "" {
		subnet = DefaultSubnet
	}
	p, err := netip.ParsePrefix(subnet)
	if err != nil || !p.Addr().Is4() {
		return nil, fmt.Errorf("subnet %q: want an IPv4 block such as %s", subnet, DefaultSubnet)
	}
	a := &addresses{subnet: p.Masked(), domain: shapes.SearchDomain(region), next: p.Masked().Addr()}
	for range reserved {
		a.next = a.next.Next()
	}
	return a, nil
}

func (a *addresses) take() (*controlplane.Network, error) {
	if a.subnet.Contains(a.next.Next()) { // the last one is AWS's too
		ip := a.next
		a.next = ip.Next()
		return &controlplane.Network{IP: ip.String(), MAC: shapes.MAC(ip).String(), PrivateDNSName: shapes.PrivateDNSName(ip, a.domain)}, nil
	}
	if len(a.free) == 0 {
		return nil, errNoAddress
	}
	n := a.free[0]
	a.free = a.free[1:]
	return n, nil
}

// give takes an address back; nil is none.
func (a *addresses) give(n *controlplane.Network) {
	if n != nil {
		a.free = append(a.free, n)
	}
}

// runtimeID is a container's, in Fargate's form.
func runtimeID(taskID string) string { return fmt.Sprintf("%s-%010d", taskID, rand.Int64N(1e10)) }

// digests are those of images, by their names: the same for the same name.
type digests map[string]string

func (d digests) of(image string) string {
	digest, known := d[image]
	if !known {
		sum := sha256.Sum256([]byte(image))
		digest = "sha256:" + hex.EncodeToString(sum[:])
		d[image] = digest
	}
	return digest
}
