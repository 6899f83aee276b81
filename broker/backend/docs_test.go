package backend_test

import (
	"os"
	"strings"
	"testing"
)

// TestPageHasTheTestedSetup compares docs/TOKENS.md with the files that the tests of this
// package run and read.
func TestPageHasTheTestedSetup(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/TOKENS.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, language := range map[string]string{"consul-login.sh": "sh", "vault-broker.hcl": "hcl"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if block := "```" + language + "\n" + string(text) + "```\n"; !strings.Contains(string(page), block) {
			t.Errorf("docs/TOKENS.md does not show testdata/%s:\n\n%s", file, block)
		}
	}
}
