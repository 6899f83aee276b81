package shapes

import (
	"errors"
	"net/netip"
	"testing"
)

func TestPool(t *testing.T) {
	t.Parallel()
	pool := NewPool(netip.MustParsePrefix("10.1.2.16/28"))
	take := func(want string) {
		t.Helper()
		if ip, err := pool.Take(); err != nil || ip.String() != want {
			t.Errorf("take: %v, %v; want %s", ip, err, want)
		}
	}
	take("10.1.2.20")
	take("10.1.2.21")
	if ip, err := pool.TakeHigh(); err != nil || ip.String() != "10.1.2.30" {
		t.Errorf("takeHigh: %v, %v; want 10.1.2.30", ip, err)
	}
	pool.Release(netip.MustParseAddr("10.1.2.20"))
	// Not 20: it rests until the others have been used.
	for _, want := range []string{"10.1.2.22", "10.1.2.23", "10.1.2.24", "10.1.2.25", "10.1.2.26", "10.1.2.27",
		"10.1.2.28", "10.1.2.29", "10.1.2.20"} {
		take(want)
	}
	if _, err := pool.Take(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("take from a full pool: %v", err)
	}
	if _, err := pool.TakeHigh(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("takeHigh from a full pool: %v", err)
	}
	pool.Release(netip.MustParseAddr("10.1.2.25"))
	take("10.1.2.25")
}
