package network

import (
	"errors"
	"net/netip"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// ErrNoAddress means that every address of the subnet is taken.
var ErrNoAddress = errors.New("no free address in the subnet: stop a task or take a larger subnet")

// pool hands out addresses from first to last. It goes round instead of taking
// the lowest free one: an address just given back rests as long as possible,
// so that a late packet for a dead task does not reach a new one.
type pool struct {
	mu          sync.Mutex
	first, last netip.Addr
	next        netip.Addr
	used        map[netip.Addr]bool
}

// newPool covers the plan's addresses without those AWS keeps for itself: the
// first four and the last.
func newPool(p plan) *pool {
	return &pool{first: p.at(4), last: shapes.ServiceAddress(p.subnet), next: p.at(4), used: map[netip.Addr]bool{}}
}

// take returns the next free address, going up.
func (p *pool) take() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.next
	for {
		ip := p.next
		if p.next = ip.Next(); ip == p.last {
			p.next = p.first
		}
		if !p.used[ip] {
			p.used[ip] = true
			return ip, nil
		}
		if p.next == start {
			return netip.Addr{}, ErrNoAddress
		}
	}
}

// takeHigh returns the highest free address: infrastructure lives at the end
// of the subnet, away from the tasks.
func (p *pool) takeHigh() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ip := p.last; ip.Compare(p.first) >= 0; ip = ip.Prev() {
		if !p.used[ip] {
			p.used[ip] = true
			return ip, nil
		}
	}
	return netip.Addr{}, ErrNoAddress
}

// release gives an address back.
func (p *pool) release(ip netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, ip)
}
