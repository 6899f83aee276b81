package aclrules

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lintValid lints a text that is a policy.
func lintValid(t *testing.T, text string) []Finding {
	t.Helper()
	if _, err := Parse(text); err != nil {
		t.Fatal(err)
	}
	return LintText("", text)
}

// Who may write the keys of controllers and brokers can have them act for itself.
func TestLintOfOwnKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`key_prefix "" { policy = "write" }`:                                                       "1",
		`key_prefix "consul" { policy = "WRITE" }`:                                                 "1",
		`key_prefix "consul-ecs/" { policy = "write" }`:                                            "1",
		`key_prefix "consul-ecs/setup/" { policy = "write" }`:                                      "1",
		`key "consul-ecs/setup/trust/x" { policy = "write" }`:                                      "1",
		`key_prefix "" { policy = "write" }; key_prefix "consul-ecs/setup/" { policy = "deny" }`:   "1",
		`key_prefix "" { policy = "write" }; key_prefix "consul-ecs/" { policy = "deny" }`:         "",
		`key_prefix "" { policy = "write" }; key_prefix "consul-" { policy = "read" }`:             "",
		`key_prefix "consul-" { policy = "deny" }; key "consul-ecs/x" { policy = "write" }`:        "2",
		`key_prefix "c" { policy = "write" }; key_prefix "consul-ecs/broker" { policy = "write" }`: "1 2",
		`key_prefix "" { policy = "list" }`:                                                        "",
		`key_prefix "app/" { policy = "write" }`:                                                   "",
		`key "consul-ecs" { policy = "write" }`:                                                    "",
		`key_prefix "consul-ecs" { policy = "write" }`:                                             "1",
		`service_prefix "" { policy = "write" }`:                                                   "",
	} {
		var got []string
		for _, f := range LintText("p", strings.ReplaceAll(text, "; ", "\n")) {
			if f.Code == KV {
				got = append(got, strconv.Itoa(f.Line))
			}
		}
		if lines := strings.Join(got, " "); lines != want {
			t.Errorf("%s: at %q, want %q", text, lines, want)
		}
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	text := `servce "web" { policy = "write" }
service "web" { polcy = "write" policy = "Write" }
key_prefix "" { policy = "read" }
key "a" { policy = "read" }
key "a" { policy = "deny" }
namespace "team" { acl = "write" }
identity "x" { policy = "read" }
node "n" { policy = "read" sentinel { code = "x" } }
acl = "write"
operator = "READ"
key_prefix "b" { policy = "read" }
`
	want := []Finding{
		{"", 1, Inert, `servce is ignored: there is no such resource; did you mean "service"?`},
		{"", 2, Inert, `polcy in service is ignored; did you mean "policy"?`},
		{"", 2, Case, `service "web" = "Write" loses against any other rule for the same: write "write"`},
		{"", 4, Shadowed, `key "a" = read has no effect: line 5: deny outranks it`},
		{"", 6, Inert, "namespace does nothing in Consul's community edition, and neither does what is inside"},
		{"", 7, Inert, "identity is read and dropped: remove it"},
		{"", 8, Inert, "sentinel in node does nothing in Consul's community edition"},
		{"", 9, root, `acl = "write" is equivalent to root: its holder can make a management token`},
		{"", 10, Case, `operator = "READ" is ignored: write "read"`},
		{"", 11, Shadowed, `key_prefix "b" = read has no effect: line 3: key_prefix "" = read grants the same`},
	}
	got := lintValid(t, text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, clean := range []string{"", `service_prefix "" { policy = "read" } service "web" { policy = "write" }`, `node_prefix "a" { policy = "read" } node_prefix "ab" { policy = "deny" } node_prefix "abc" { policy = "read" }`} {
		if got := lintValid(t, clean); got != nil {
			t.Errorf("%q: %v", clean, got)
		}
	}
	if found := LintText("", `acl = "x"`); len(found) != 1 || found[0].Code != Invalid {
		t.Errorf("what is no policy: %v", found)
	}
}

// A label may also be within the block.
func TestLintLooksIntoNestedLabels(t *testing.T) {
	t.Parallel()
	got := lintValid(t, "service {\n\"b\" { policy = \"read\"\n intention = \"read\" }\n}\nkey = { \"a\" = { policy "+
		"= \"read\"\n Polcy = \"deny\" } }")
	want := []Finding{
		{"", 3, Inert, `intention in service is ignored; did you mean "intentions"?`},
		{"", 6, Inert, `Polcy in key is ignored; did you mean "policy"?`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLintNamesRepeatedArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"mesh = \"read\"\nacl = \"read\"\nmesh = \"write\"\nmesh = \"write\"":      {3, 4},
		"key \"a\" { policy = \"read\"\n policy = \"deny\" }":                      {2},
		`key "a" { policy = "read" } key "b" { policy = "read" }`:                  nil,
		"key = { a = { policy = \"read\" } }\nkey = { b = { policy = \"read\" } }": {2},
		`{"mesh": "read", "mesh": "write"}`:                                        nil,
	} {
		found := lintValid(t, text)
		var lines []int
		for _, l := range found {
			if l.Code == Repeated {
				lines = append(lines, l.Line)
			}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: lines %v, want %v", text, lines, want)
		}
	}
}

// JSON has no lines, and the same findings.
func TestLintJSON(t *testing.T) {
	t.Parallel()
	text := `{"servce": {"web": {"policy": "write"}}, "service": {"web": {"polcy": "write", "policy": "read"}}, "operator": "write",
		"node_prefix": [{"": {"policy": "READ"}}], "key": {"a": {"policy": "read"}}, "key_prefix": {"": {"policy": "read"}}}`
	want := []Finding{
		{"", 0, Inert, `servce is ignored: there is no such resource; did you mean "service"?`},
		{"", 0, Inert, `polcy in service is ignored; did you mean "policy"?`},
		{"", 0, Case, `node_prefix "" = "READ" loses against any other rule for the same: write "read"`},
		{"", 0, Shadowed, `key "a" = read has no effect: key_prefix "" = read grants the same`},
		{"", 0, root, `operator = "write" is enough to pose as any service: its holder can replace the mesh's certificate authority`},
	}
	got := lintValid(t, text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
