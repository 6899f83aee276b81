package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// UIDs is a range of user IDs, both ends included.
type UIDs struct{ First, Last uint32 }

// String returns the range as a document has it.
func (u UIDs) String() string {
	if u.First == u.Last {
		return strconv.FormatUint(uint64(u.First), 10)
	}
	return fmt.Sprintf("%d-%d", u.First, u.Last)
}

// parsePrefix reads an item of excludeOutboundCIDRs, a CIDR block or one address. Bits
// behind the prefix are cleared.
func parsePrefix(raw string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(raw); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(raw)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR block such as 10.0.0.0/8, or an address", raw)
	}
	return prefix.Masked(), nil
}

// parseUIDs reads an item of excludeUIDs, a user ID or a range such as 1000-1999. Names are
// refused: mesh-init does not know the users of other containers' images.
func parseUIDs(raw string) (UIDs, error) {
	low, high, isRange := strings.Cut(raw, "-")
	if !isRange {
		high = low
	}
	first, lowErr := strconv.ParseUint(low, 10, 32)
	last, highErr := strconv.ParseUint(high, 10, 32)
	if lowErr != nil || highErr != nil || first > last {
		return UIDs{}, fmt.Errorf("%q is not a user ID such as 1000, or a range such as 1000-1999", raw)
	}
	return UIDs{First: uint32(first), Last: uint32(last)}, nil
}

// readExclusions reads the exclusions where they have an effect, and records those that cannot
// be read.
func readExclusions(cfg *Config, found *decoder) {
	t := &cfg.TransparentProxy
	if !t.Enabled || cfg.Gateway != nil {
		return
	}
	check := func(field string, i int, err error) {
		path := fmt.Sprintf("$.transparentProxy.%s[%d]", field, i)
		// An item that is no text has its violation.
		if err != nil && !slices.ContainsFunc(found.violations, func(f Finding) bool { return f.Path == path }) {
			found.violate(path, "%v", err)
		}
	}
	for i, raw := range t.ExcludeOutboundCIDRs {
		prefix, err := parsePrefix(raw)
		check("excludeOutboundCIDRs", i, err)
		t.Prefixes = append(t.Prefixes, prefix)
	}
	for i, raw := range t.ExcludeUIDs {
		uids, err := parseUIDs(raw)
		check("excludeUIDs", i, err)
		t.UIDs = append(t.UIDs, uids)
	}
}
