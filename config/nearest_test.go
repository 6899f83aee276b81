package config

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"port", "name", "tags", "enableTagOverride", "weights"}
	for name, want := range map[string]string{
		"prot":                      "port",
		"PORT":                      "port",
		"nmae":                      "name",
		"enabletagoverride":         "enableTagOverride",
		"weight":                    "weights",
		"ports":                     "port",
		"tag":                       "tags",
		"zone":                      "",
		"gibberish":                 "",
		"x":                         "",
		"":                          "",
		"description":               "",
		strings.Repeat("a", 100000): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
