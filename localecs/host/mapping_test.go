package host

import (
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alice returns a caller who has everything that Run needs.
func alice() caller {
	return caller{
		UID: 1000, GID: 100, Name: "alice",
		UIDs:      []idRange{{100000, 65536}},
		GIDs:      []idRange{{200000, 65536}},
		NewUIDMap: "/usr/bin/newuidmap", NewGIDMap: "/usr/bin/newgidmap",
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	one := []Extent{{Inside: 0, Outside: 1000, Count: 1}}
	group := []Extent{{Inside: 0, Outside: 100, Count: 1}}
	host := []Extent{{Inside: 0, Outside: 0, Count: 4294967295}}
	nested := []Extent{{Inside: 0, Outside: 1000, Count: 1}, {Inside: 1, Outside: 100000, Count: 65536}}
	for name, tc := range map[string]struct {
		change func(*caller)
		want   mapping
	}{
		"full": {func(*caller) {}, mapping{
			UIDs:      []Extent{{Inside: 0, Outside: 1000, Count: 1}, {Inside: 1, Outside: 100000, Count: 65536}},
			GIDs:      []Extent{{Inside: 0, Outside: 100, Count: 1}, {Inside: 1, Outside: 200000, Count: 65536}},
			ByHelpers: true,
		}},
		"several ranges, the middle one unusable": {func(c *caller) {
			c.UIDs = []idRange{{100000, 10}, {900, 200}, {500000, 20}}
			c.GIDs = []idRange{{100000, 10}, {100000, 10}, {100009, 5}, {90000, 10000}, {99999, 1}}
		}, mapping{
			UIDs: []Extent{{Inside: 0, Outside: 1000, Count: 1}, {Inside: 1, Outside: 100000, Count: 10}, {Inside: 11, Outside: 500000, Count: 20}},
			GIDs: []Extent{
				{Inside: 0, Outside: 100, Count: 1}, {Inside: 1, Outside: 100000, Count: 10}, {Inside: 11, Outside: 90000, Count: 10000},
			},
			ByHelpers: true,
		}},
		"no program": {func(c *caller) { c.NewGIDMap = "" }, mapping{
			UIDs: one, GIDs: group, Lacks: "newgidmap is not installed (package uidmap)",
		}},
		"no range": {func(c *caller) { c.UIDs = nil }, mapping{
			UIDs: one, GIDs: group, Lacks: `/etc/subuid has no line for the user (such as "alice:100000:65536")`,
		}},
		"a range that is the user": {func(c *caller) { c.GIDs = []idRange{{0, 65536}} }, mapping{
			UIDs: one, GIDs: group, Lacks: `/etc/subgid has no line for the user (such as "alice:100000:65536")`,
		}},
		"nothing at all": {func(c *caller) { *c = caller{UID: 1000, GID: 100} }, mapping{
			UIDs: one, GIDs: group,
			Lacks: `newuidmap is not installed (package uidmap), newgidmap is not installed (package uidmap), ` +
				`/etc/subuid has no line for the user (such as "1000:100000:65536"), /etc/subgid has no line for the user (such as "1000:100000:65536")`,
		}},
		"root of a container": {func(c *caller) {
			*c = caller{SetIDs: true, Own: IDs{UIDs: host, GIDs: host, Groups: true}}
		}, mapping{UIDs: host, GIDs: host, Groups: true}},
		"root of a user namespace": {func(c *caller) {
			*c = caller{SetIDs: true, Own: IDs{UIDs: nested, GIDs: one}}
		}, mapping{
			UIDs: []Extent{{Inside: 0, Outside: 0, Count: 1}, {Inside: 1, Outside: 1, Count: 65536}},
			GIDs: []Extent{{Inside: 0, Outside: 0, Count: 1}},
		}},
	} {
		c := alice()
		tc.change(&c)
		if d := cmp.Diff(tc.want, choose(c)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if nested[0].Outside != 1000 {
		t.Error("the caller's own map was changed")
	}
}

// The kernel refuses a map of more lines, and one past the last ID.
func TestFillStaysWithinTheKernelsBounds(t *testing.T) {
	t.Parallel()
	var many []idRange
	for i := range int64(1000) {
		many = append(many, idRange{100000 + 10*i, 10})
	}
	if got := fill(1000, many); len(got) != 340 {
		t.Errorf("%d lines, want 340", len(got))
	}
	got := fill(0, []idRange{{1, 4294967290}, {4294967291, 4}})
	if d := cmp.Diff([]Extent{{Inside: 0, Outside: 0, Count: 1}, {Inside: 1, Outside: 1, Count: 4294967290}, {Inside: 4294967291, Outside: 4294967291, Count: 4}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := fill(5, []idRange{{6, 4294967289}, {0, 5}, {1, 1}}); len(got) != 3 {
		t.Errorf("got %v, want two ranges and the user", got)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	extents := []Extent{{Inside: 0, Outside: 1000, Count: 1}, {Inside: 1, Outside: 100000, Count: 65536}}
	if got := helperArgs(42, extents); !slices.Equal(got, []string{"42", "0", "1000", "1", "1", "100000", "65536"}) {
		t.Errorf("helperArgs = %q", got)
	}
	want := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1000, Size: 1}, {ContainerID: 1, HostID: 100000, Size: 65536}}
	if d := cmp.Diff(want, sysMap(extents)); d != "" {
		t.Errorf("sysMap (-want +got):\n%s", d)
	}
	if got := describe(extents); got != "0=1000 1-65536=100000-165535" {
		t.Errorf("describe = %q", got)
	}
}
