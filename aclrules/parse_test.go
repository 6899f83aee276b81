package aclrules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	web := &Rule{Resource: Service, Segment: "web", Level: "write", Line: 1}
	for name, c := range map[string]struct {
		text string
		want []*Rule
	}{
		"empty":   {"", nil},
		"comment": {"# nothing\n", nil},
		"a line":  {`service "web" { policy = "write" }`, []*Rule{web}},
		"json": {`{"service":{"web":{"policy":"write"}}}`,
			[]*Rule{{Resource: Service, Segment: "web", Level: "write"}}},
		"json list": {`{"service":[{"web":{"policy":"write"}},{"api":{"policy":"read"}}]}`,
			[]*Rule{{Resource: Service, Segment: "web", Level: "write"},
				{Resource: Service, Segment: "api", Level: "read"}}},
		"letter case of keys": {`SERVICE "web" { Policy = "write" }`, []*Rule{web}},
		"letter case of levels stays": {`operator = "WRITE"`,
			[]*Rule{{Resource: Operator, Level: "WRITE", Line: 1}}},
		"the last of a scalar": {"acl = \"read\"\nacl = \"deny\"",
			[]*Rule{{Resource: ACL, Level: "deny", Line: 2, Overridden: &Rule{Resource: ACL, Level: "read", Line: 1}}}},
		"an empty scalar": {`mesh = ""`, nil},
		"repeated segments stay": {"node \"a\" { policy = \"read\" }\nnode \"a\" { policy = \"deny\" }",
			[]*Rule{{Resource: Node, Segment: "a", Level: "read", Line: 1},
				{Resource: Node, Segment: "a", Level: "deny", Line: 2}}},
		"an empty segment": {`key "" { policy = "list" }`, []*Rule{{Resource: Key, Level: "list", Line: 1}}},
		"intentions": {"service_prefix \"w\" {\n  policy = \"read\"\n  intentions = \"write\"\n}",
			[]*Rule{{Resource: Service, Prefix: true, Segment: "w", Level: "read", Intentions: "write", Line: 1}}},
		"what the server ignores": {`servce "web" { policy = "x" } namespace "a" { acl = "write" } identity "a" { ` +
			`policy = "?" } node "n" { policy = "read" sentinel { code = "x" } }`,
			[]*Rule{{Resource: Node, Segment: "n", Level: "read", Line: 1}}},
		"intentions of what has none": {`node "n" { policy = "read" intentions = "x" }`,
			[]*Rule{{Resource: Node, Segment: "n", Level: "read", Line: 1}}},
	} {
		p, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, p); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseRefusesWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`service "web" { policy = "wirte" }`:                    `line 1: service "web": policy "wirte": want deny, read or write`,
		`service "web" { }`:                                     `service "web": policy "": want deny, read or write`,
		`service "web" { policy = "list" }`:                     `policy "list"`,
		"\n\nkey_prefix \"a/\" { policy = \"all\" }":            `line 3: key_prefix "a/": policy "all": want deny, read, list or write`,
		`service "web" { policy = "read" intentions = "list" }`: `intentions "list": want deny, read or write`,
		`acl = "list"`:                        `line 1: acl: policy "list"`,
		`acl = 5`:                             `line 1: acl: policy "5"`,
		`acl = true`:                          "not a policy: ",
		`service "web" { policy = true }`:     "not a policy: ",
		`service "web" {`:                     "neither HCL nor JSON: ",
		`identity = 5`:                        "not a policy: ",
		strings.Repeat("a {", 65):             "brackets are nested more than 64 deep",
		"# " + strings.Repeat("a", maxPolicy): "bytes: want at most 1048576",
	} {
		if p, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, %v; want %q", text, p, err, want)
		}
	}
	_, err := Parse("acl = \"x\"\nnode \"n\" { policy = \"y\" }")
	if err == nil || strings.Count(err.Error(), "want deny") != 2 {
		t.Errorf("not all at once: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`service "web" { policy = "write" intentions = "read" }`, `{"key_prefix":{"":{"policy":"list"}}}`,
		"acl = \"write\"\nmesh = \"deny\"",
		"key <<EOF\nEOF\n", `service { policy = "read" }`, `key = [["a"]]`, `node "${a}" { policy = "read" }`, "{", "[",
		`a = "\x"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if p != nil && err != nil {
			t.Fatalf("rules %v, error %v", p, err)
		}
		if err != nil {
			return
		}
		if _, err := UnknownKeys(text); err != nil {
			t.Fatalf("parsed, and then: %v", err)
		}
		// What was parsed can be written down and means the same.
		var again strings.Builder
		for _, r := range p {
			if strings.ContainsAny(r.Segment, "$\x00") || r.Segment != strings.ToValidUTF8(r.Segment, "") {
				return // the language cannot write these in one line
			}
			again.WriteString(r.HCL() + "\n")
		}
		q, err := Parse(again.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, again.String(), err)
		}
		for i := range q {
			q[i].Line = p[i].Line
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatalf("%q became %q (-want +got):\n%s", text, again.String(), diff)
		}
	})
}
