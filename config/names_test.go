package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitWords(t *testing.T) {
	t.Parallel()
	if got, want := SplitWords(" a,b  c ,,\td\n"), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestIsDNSLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "team-1": true, "A9": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "a_b": false, "a.b": false, "é": false, strings.Repeat("a", 64): false, "a\n": false,
	} {
		if got := IsDNSLabel(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}
