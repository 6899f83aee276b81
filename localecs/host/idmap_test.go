package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// host returns three users: root, one who has sub-IDs, one who has none.
func host() IDs {
	e := []Extent{{0, 0, 4294967295}}
	return IDs{e, e, true, true}
}

func full() IDs {
	return IDs{
		UIDs: []Extent{{0, 1000, 1}, {1, 100000, 65536}},
		GIDs: []Extent{{0, 1000, 1}, {1, 100000, 5000}, {7000, 300000, 10}}, Groups: true,
	}
}

func singleID() IDs { return IDs{UIDs: []Extent{{0, 1000, 1}}, GIDs: []Extent{{0, 1000, 1}}} }

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Extent{
		"         0          0 4294967295\n": {{0, 0, 4294967295}},
		"0 1000 1\n1 100000 65536\n":         {{0, 1000, 1}, {1, 100000, 65536}},
		"":                                   nil, // not written yet
	} {
		got, err := parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
	for text, want := range map[string]string{
		"0 1000\n":           `line "0 1000\n": want three numbers`,
		"0 -1 1\n":           `line "0 -1 1\n": strconv.ParseUint: parsing "-1": invalid syntax`,
		"0 0 4294967296\n":   `line "0 0 4294967296\n": strconv.ParseUint: parsing "4294967296": value out of range`,
		"0 0 1\n\n0 0 1 2\n": `line "\n": want three numbers`,
	} {
		if got, err := parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 1000 1\n1 100000 65536\n")
	f.Fuzz(func(t *testing.T, text string) {
		extents, err := parse(text)
		if err != nil {
			return
		}
		for _, e := range extents {
			if low := min(e.Inside, e.Outside, e.Count); low < 0 {
				t.Errorf("%q: %v has the negative %d", text, e, low)
			}
		}
		i := IDs{UIDs: extents, GIDs: extents}
		u, g, ok := i.Fit(5, 6)
		if want := has(i.UIDs, 5) && i.HasGID(6); ok != want {
			t.Errorf("%q: Fit(5, 6) = %d, %d, %v; want %v", text, u, g, ok, want)
		}
		if u != 5 && u != 0 {
			t.Errorf("%q: Fit(5, 6) gives the user %d, want 5 or 0", text, u)
		}
		if g != 6 && g != 0 {
			t.Errorf("%q: Fit(5, 6) gives the group %d, want 6 or 0", text, g)
		}
	})
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name             string
		ids              IDs
		uid, gid, ru, rg int
		ok               bool
	}{
		{"root on the host", host(), 0, 0, 0, 0, true},
		{"the last ID of the host", host(), 4294967294, 4294967294, 4294967294, 4294967294, true},
		{"root", singleID(), 0, 0, 0, 0, true},
		{"user without sub-IDs", singleID(), 5995, 0, 0, 0, false},
		{"group without sub-IDs", singleID(), 0, 5, 0, 0, false},
		{"user with sub-IDs", full(), 5995, 5, 5995, 5, true},
		{"last of a range", full(), 65536, 7009, 65536, 7009, true},
		{"past a range", full(), 65537, 7010, 0, 0, false},
		{"between ranges", full(), 5995, 5995, 5995, 0, false},
	} {
		u, g, ok := tc.ids.Fit(tc.uid, tc.gid)
		testkit.Equal(t, tc.name+": user and group", [2]int{u, g}, [2]int{tc.ru, tc.rg})
		testkit.Equal(t, tc.name+": ok", ok, tc.ok)
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	own, err := CurrentIDs()
	if err != nil {
		t.Fatal(err)
	}
	if !has(own.UIDs, 0) && !has(own.UIDs, 65534) {
		t.Errorf("own user IDs %+v", own.UIDs)
	}
	if len(own.GIDs) == 0 {
		t.Error("no own group IDs")
	}
}

func TestParseSubIDs(t *testing.T) {
	t.Parallel()
	const file = `alice:100000:65536
bob:165536:65536
1000:300000:10
alice:400000:1

# alice:1:2
alice:x:5
alice:-1:5
alice:500000:0
alice:4294967295:1
alice:4294967290:6
alice:4294967290:5
alice:1
:7:7
alicea:8:8
2000:9:9
 alice:600000:2
`
	for _, tc := range []struct {
		name string
		uid  int
		want []idRange
	}{
		{"alice", 1000, []idRange{{100000, 65536}, {300000, 10}, {400000, 1}, {4294967290, 5}, {600000, 2}}},
		{"bob", 1001, []idRange{{165536, 65536}}},
		{"", 2000, []idRange{{9, 9}}}, // a number without a name
		{"carol", 3000, nil},
		{"", 3000, nil},
	} {
		if got := parseSubIDs(file, tc.name, tc.uid); !slices.Equal(got, tc.want) {
			t.Errorf("%q, %d: %v, want %v", tc.name, tc.uid, got, tc.want)
		}
	}
}

func FuzzParseSubIDs(f *testing.F) {
	f.Add("alice:100000:65536\n1000:300000:10\n", "alice", 1000)
	f.Add("1000:4294967294:1", "", 1000)
	f.Fuzz(func(t *testing.T, text, name string, uid int) {
		ranges := parseSubIDs(text, name, uid)
		for _, r := range ranges {
			if r.Start < 0 || r.Count < 1 {
				t.Errorf("%q: %v", text, r)
			}
			if end := r.Start + r.Count - 1; end > lastID {
				t.Errorf("%q: %v ends at %d, want at most %d", text, r, end, lastID)
			}
		}
		next := int64(0)
		for i, e := range fill(1000, ranges) {
			testkit.Equal(t, fmt.Sprintf("%q: beginning of line %d", text, i), e.Inside, next)
			if end := e.Inside + e.Count - 1; e.Count < 1 || end > lastID {
				t.Errorf("%q: line %d is %v, want 1 to %d", text, i, e, lastID)
			}
			if i >= maxExtents {
				t.Errorf("%q: line %d, want fewer than %d", text, i, maxExtents)
			}
			next = e.Inside + e.Count
		}
	})
}
