package aclrules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Why each rule that was looked at lost, the nearest first.
func TestExplainNamesTheLosers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policies, query, winner, losers string }{
		{`service "a" { policy = "write" } --- service "a" { policy = "deny" }`, "service:a write",
			`service "a" = deny`, `service "a" = write: deny outranks write`},
		{`service "a" { policy = "read" } --- service "a" { policy = "read" } service_prefix "" { policy = "write" }`,
			"service:a read",
			`service "a" = read`, `service "a" = read: has the same level; service_prefix "" = write: an exact rule exists`},
		{`node_prefix "" { policy = "deny" } node_prefix "ab" { policy = "read" } node_prefix "a" { policy = "write" }`,
			"node:abc write",
			`node_prefix "ab" = read`, `node_prefix "a" = write: a longer prefix matches; node_prefix "" = deny: a longer prefix matches`},
		{`service "a" { policy = "DENY" } service "a" { policy = "write" }`, "service:a write",
			`service "a" = write`, `service "a" = DENY: DENY is not in lower case and outranks nothing`},
		{`service "a" { policy = "write" intentions = "deny" } service "a" { policy = "write" }`, "intention:a read",
			`service "a" intentions = deny`, `service "a" = write (intentions = read): does not set intentions`},
		{`operator = "write" mesh = "read"`, "mesh write", `mesh = read`, `operator = write: mesh has its own rule`},
		{`operator = "write"`, "peering write", `operator = write`, ""},
		{`key_prefix "a/" { policy = "write" } key "a/b" { policy = "read" } key "a/c" { policy = "deny" } key "a/d" { policy = "write" }`, "key:a/ write-prefix",
			`key "a/b" = read`, `key_prefix "a/" = write: another rule decides for all; key "a/c" = deny: also ` +
				`denies; key "a/d" = write: another rule decides for all`},
		{`service "a" { policy = "read" } service "b" { policy = "deny" }`, "intention:* write",
			`service "a" = read (intentions = read)`, `service "b" = deny (intentions = deny): also denies`},
		{`key "a/b" { policy = "write" }`, "key:a/ write-prefix", "", `key "a/b" = write: does not decide alone`},
	} {
		x := Merge(pool(t, strings.Split(c.policies, "---")...), Options{Default: Denied}).Explain(query(t, c.query))
		var losers []string
		for _, l := range x.Losers {
			losers = append(losers, fmt.Sprintf("%s: %s", l.Rule, l.Why))
		}
		if diff := cmp.Diff([]string{c.winner, c.losers},
			[]string{x.Winner.Rule, strings.Join(losers, "; ")}); diff != "" {
			t.Errorf("%s\n%s (-want +got):\n%s", c.policies, c.query, diff)
		}
	}
}

func TestWhyWithoutARule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policies, query, want string
		o                     Options
	}{
		{"", "service:a read", "deny: no rule applies: the default policy is deny", Options{Default: Denied}},
		{"", "service:a read", "allow: no rule applies: the default policy is allow", Options{Default: Allowed}},
		{"", "acl read", "deny: no rule applies, and the default policy allows all but access to ACLs",
			Options{Default: Allowed}},
		{"", "acl read", "unknown: no rule applies, and the default policy is not known: a token with acl:read can read it", Options{}},
		{"", "acl read", "unknown: no rule that could be read applies, and others could not be read",
			Options{Default: Denied, Incomplete: true}},
		{`acl = "write"`, "acl read", "unknown: rules that could not be read may decide otherwise",
			Options{Default: Denied, Incomplete: true}},
		{`acl = "write"`, "acl read", "allow: ", Options{Default: Denied}},
	} {
		x := Merge(pool(t, c.policies), c.o).Explain(query(t, c.query))
		if got := x.Verdict.String() + ": " + x.Why; got != c.want {
			t.Errorf("%q, %s: got %q, want %q", c.policies, c.query, got, c.want)
		}
		proposes := x.Change.Add != "" || x.Change.Remove != nil
		if unknown := x.Verdict == Unknown && c.o.Incomplete; unknown && proposes {
			t.Errorf("%q, %s: proposes %+v although it cannot know", c.policies, c.query, x.Change)
		}
	}
}

// As one policy, the merged rules grant what the table does.
func TestMergedGrantsTheSame(t *testing.T) {
	t.Parallel()
	text := `acl = "read"
service "a" { policy = "WRITE" }
service "a" { policy = "read" intentions = "deny" }
key_prefix "" { policy = "list" }
key_prefix "" { policy = "deny" }
mesh = "WRITE"`
	var got []string
	for _, m := range Merge(pool(t, text), Options{}).merged() {
		got = append(got, fmt.Sprintf("%s from %d", m.Rule.HCL(), len(m.Contributions)))
	}
	want := []string{`acl = "read" from 1`, `key_prefix "" { policy = "deny" } from 2`,
		`service "a" { policy = "read" intentions = "deny" } from 2`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"service:web read": "service:web read", "key:a:b/c write-prefix": "key:a:b/c write-prefix",
		"acl write": "acl write", "service: read": "service read",
		"key list": "key list",
		"servce:web read": `resource "servce": want one of acl, agent, event, intention, key, keyring, mesh, node, ` +
			`operator, peering, query, service, session; did you mean "service"?`,
		"service:web list": `access "list" to service: want one of read, write`,
		"key:a delete":     `access "delete" to key: want one of read, list, write, write-prefix`,
	} {
		what, access, _ := strings.Cut(text, " ")
		q, err := ParseQuery(what, access)
		got := q.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
