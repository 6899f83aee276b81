package controlplane_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

var now = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

func same(s string) string { return s }

// TestPagesTogetherAreTheList takes lists, sizes and directions at random.
func TestPagesTogetherAreTheList(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var items []string
		for i := range random.IntN(30) {
			items = append(items, fmt.Sprintf("%02d", i))
		}
		size := 1 + random.IntN(10)
		d := bool(random.IntN(2) == 1)
		if d == true {
			slices.Reverse(items)
		}
		in := shapes.PageInput{MaxResults: &size}
		var got []string
		for n := 0; ; n++ {
			part, next, err := controlplane.Page(items, all, in, "scope", now, d, same)
			if err != nil {
				t.Fatalf("page %d: %q, %v", n, part, err)
			}
			if len(part) > size || n > len(items) {
				t.Fatalf("page %d: %q, %v", n, part, err)
			}
			got = append(got, part...)
			if in.NextToken = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, items) {
			t.Errorf("size %d: got %q, want %q", size, got, items)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add("x", 1)
	f.Add("", 100)
	one := 1
	_, token, _ := controlplane.Page([]string{"a", "b"}, all, shapes.PageInput{MaxResults: &one}, "scope", now, false,
		same)
	f.Add(token, 2)
	f.Fuzz(func(t *testing.T, token string, size int) {
		part, _, err := controlplane.Page([]string{"a", "b", "c"}, all,
			shapes.PageInput{NextToken: token, MaxResults: &size}, "scope", now, false, same)
		if err != nil {
			return
		}
		if len(part) > size || !slices.IsSorted(part) {
			t.Errorf("%q of %d", part, size)
		}
	})
}

func TestInputTags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tags []shapes.Tag
		want string
	}{
		{nil, ""},
		{[]shapes.Tag{{Key: strings.Repeat("k", 128), Value: strings.Repeat("v", 256)}, {Key: "k"}}, ""},
		{[]shapes.Tag{{Key: strings.Repeat("ü", 128), Value: strings.Repeat("世", 256)}}, ""},
		{make([]shapes.Tag, 51), "tags can have at most 50 items."},
		{[]shapes.Tag{{}}, "Tag key can't be empty."},
		{[]shapes.Tag{{Key: "aws:x"}}, "Tag keys can't start with 'aws:'."},
		{[]shapes.Tag{{Key: strings.Repeat("k", 129)}}, "Tag keys can have at most 128 characters."},
		{[]shapes.Tag{{Key: "k", Value: strings.Repeat("v", 257)}}, "Tag values can have at most 256 characters."},
		{[]shapes.Tag{{Key: "k"}, {Key: "k"}}, "Duplicate tag keys found."},
	} {
		err := controlplane.Tags(tt.tags)
		if tt.want != "" {
			testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: "+tt.want)
		} else if err != nil {
			t.Errorf("%v: %v", tt.tags, err)
		}
	}
}

func TestMergeTags(t *testing.T) {
	t.Parallel()
	old := []shapes.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}
	got := controlplane.MergeTags(old, shapes.Tag{Key: "b", Value: "3"}, shapes.Tag{Key: "c", Value: "4"})
	want := []shapes.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "3"}, {Key: "c", Value: "4"}}
	if d := cmp.Diff(want, got); d != "" || old[1].Value != "2" {
		t.Errorf("%v (-want +got):\n%s", old, d)
	}
}

func all(string) bool { return true }
