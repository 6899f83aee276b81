package docker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzParseNumbers(f *testing.F) {
	f.Add("Name:\tsleep\nNSpid:\t4711\t56\t1\nThreads:\t1\n")
	f.Add("NSpid: x")
	f.Fuzz(func(t *testing.T, status string) {
		for _, n := range parseNumbers(status) {
			if n == 0 && !strings.Contains(status, "0") {
				t.Errorf("0 out of %q", status)
			}
		}
	})
}

func TestParseNumbers(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]int{4711, 56, 1}, parseNumbers("Name:\tsleep\nNSpid:\t4711\t56\t1\nThreads:\t1\n")); diff != "" {
		t.Error(diff)
	}
	if got := parseNumbers("NSpid:\tx\n"); got != nil {
		t.Errorf("%v of no number", got)
	}
}
