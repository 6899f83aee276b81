package shapes

import (
	"errors"
	"net/netip"
	"sync"
)

// ErrNoAddress means that every address of the subnet is taken.
var ErrNoAddress = errors.New("no free address in the subnet: stop a task or take a larger subnet")

// Pool hands out addresses of a subnet. It goes round instead of taking
// the lowest free one: an address just given back rests as long as possible,
// so that a late packet for a dead task does not reach a new one.
type Pool struct {
	mu          sync.Mutex
	first, last netip.Addr
	next        netip.Addr
	used        map[netip.Addr]bool
}

// NewPool covers the addresses of an IPv4 subnet without those AWS keeps for itself:
// the first four and the last.
func NewPool(subnet netip.Prefix) *Pool {
	first := subnet.Masked().Addr()
	for range 4 {
		first = first.Next()
	}
	return &Pool{first: first, last: ServiceAddress(subnet), next: first, used: map[netip.Addr]bool{}}
}

// Take returns the next free address, going up.
func (p *Pool) Take() (netip.Addr, error) {
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

// TakeHigh returns the highest free address: infrastructure lives at the end
// of the subnet, away from the tasks.
func (p *Pool) TakeHigh() (netip.Addr, error) {
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

// Release gives an address back.
func (p *Pool) Release(ip netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, ip)
}
