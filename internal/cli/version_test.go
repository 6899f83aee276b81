package cli

import "testing"

func TestFormatVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, commit, want string }{
		{"1.2.3", "", "v1.2.3"},
		{"1.2.3-beta.1", "abc1234", "v1.2.3-beta.1 (abc1234)"},
		{"'1.2.3'", "'abc1234'", "v1.2.3 (abc1234)"},
	} {
		if got := formatVersion(c.version, c.commit); got != c.want {
			t.Errorf("formatVersion(%q, %q) = %q, want %q", c.version, c.commit, got, c.want)
		}
	}
}
