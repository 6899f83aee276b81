package host

import (
	"slices"
	"testing"
)

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
			if r.Start < 0 || r.Count < 1 || r.Start+r.Count-1 > lastID {
				t.Errorf("%q: %v", text, r)
			}
		}
		next := int64(0)
		for i, e := range fill(1000, ranges) {
			if e.Inside != next || e.Count < 1 || e.Inside+e.Count-1 > lastID || i >= maxExtents {
				t.Errorf("%q: line %d is %v, want it to begin at %d", text, i, e, next)
			}
			next = e.Inside + e.Count
		}
	})
}
