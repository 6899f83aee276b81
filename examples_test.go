package consulecs_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIndexOfExamplesIsComplete: each directory of examples has a row.
func TestIndexOfExamplesIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range entries {
		if e.IsDir() {
			want = append(want, e.Name())
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| .* \| \[([a-z-]+)\]\(([a-z-]+)\) \|$`).FindAllSubmatch(page, -1) {
		if string(m[1]) != string(m[2]) {
			t.Errorf("%s links to %s", m[1], m[2])
		}
		got = append(got, string(m[2]))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("index of examples (-want +got):\n%s", diff)
	}
}
