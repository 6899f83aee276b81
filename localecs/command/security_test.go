package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// TestExamplesRunWithTheRightsOfTheSecurityPage compares the policies of docs/SECURITY.md
// with those of the examples, which are end-to-end tests: a right that the page lacks, or
// that no component needs, would be missing or unused there.
func TestExamplesRunWithTheRightsOfTheSecurityPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ heading, example, role, secret string }{
		{"Task that joins the mesh", "hello-mesh", "consul-ecs/web", ""},
		{"Task that joins the mesh", "agentless-mesh", "consul-ecs/api", ""},
		{"Task that joins the mesh", "agentless-gateways", "consul-ecs/api-gateway", ""},
		{"`controller`, `acl-controller`", "hello-mesh", "hello-mesh-controller", "hello-mesh/controller-token"},
		{"`controller`, `acl-controller`", "agentless-mesh", "agentless-mesh-controller", "agentless-mesh/controller-token"},
		{"`token-broker`", "token-broker", "token-broker", "token-broker/broker-token"},
	} {
		t.Run(tc.example+"/"+tc.role, func(t *testing.T) {
			t.Parallel()
			section := sectionOf(t, string(page), "### ▸ "+tc.heading+"\n")
			f, err := file.Load(filepath.Join(testkit.Root(), "examples", tc.example, "scenario.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var statement struct{ Action []string }
			if err := json.Unmarshal([]byte(fenced(t, section, "json")), &statement); err != nil {
				t.Fatal(err)
			}
			if got := f.Roles[tc.role].Actions; !slices.Equal(got, statement.Action) {
				t.Errorf("the role may call %q, the page says %q", got, statement.Action)
			}
			if tc.secret == "" {
				return
			}
			want := fenced(t, section, "hcl")
			if got := rulesOf(f, tc.secret); got != want {
				t.Errorf("the token has the rules\n%s\nthe page says\n%s", got, want)
			}
		})
	}
}

// sectionOf returns the text between a heading and the next one.
func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	_, section, ok := strings.Cut(page, heading)
	if !ok {
		t.Fatalf("the page has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	return section
}

// fenced returns the first fenced block of a language.
func fenced(t *testing.T, section, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(section)
	if found == nil {
		t.Fatalf("no block in %s:\n%s", language, section)
	}
	return found[1]
}

// rulesOf returns the rules of the token that the scenario puts into a secret.
func rulesOf(f *file.Scenario, secret string) string {
	for _, token := range f.Consul.Tokens {
		if strings.HasSuffix(token.Secret, ":secret:"+secret) {
			return token.Rules
		}
	}
	return ""
}
