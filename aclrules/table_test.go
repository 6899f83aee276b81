package aclrules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// named is a source.
type named string

func (n named) String() string { return string(n) }

// pool parses policies and pools their rules; each is its own source.
func pool(t testing.TB, policies ...string) []Sourced {
	t.Helper()
	var rules []Sourced
	for i, text := range policies {
		p, err := Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, r := range p {
			rules = append(rules, Sourced{Rule: r, Source: named(fmt.Sprintf("policy %d", i+1))})
		}
	}
	return rules
}

// query returns RESOURCE[:SEGMENT] ACCESS.
func query(t testing.TB, text string) Query {
	t.Helper()
	at := strings.LastIndexByte(text, ' ')
	q, err := ParseQuery(text[:at], text[at+1:])
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Every rule of the ACL language.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policies string // separated by ---
		want     string // RESOURCE[:SEGMENT] ACCESS VERDICT; ...; default deny
	}{
		{`service "a" { policy = "read" } --- service "a" { policy = "write" }`, "service:a write allow"},
		{`service "a" { policy = "write" } --- service "a" { policy = "deny" }`, "service:a read deny"},
		{`key "a" { policy = "read" } --- key "a" { policy = "list" }`, "key:a list allow; key:a write deny"},
		{`key "a" { policy = "list" } --- key "a" { policy = "write" }`, "key:a write allow; key:a list allow; key:a read allow"},
		{`service "a" { policy = "read" intentions = "write" } --- service "a" { policy = "deny" }`, "service:a read deny; intention:a write allow"},
		{`service "a" { policy = "write" }`, "intention:a read allow; intention:a write deny"},
		{`service "a" { policy = "deny" }`, "intention:a read deny"},
		{`service "a" { policy = "WRITE" }`, "service:a write allow; intention:a read deny"},
		{`service "a" { policy = "DENY" } --- service "a" { policy = "write" }`, "service:a write allow"},
		{`service "a" { policy = "DENY" } --- service "a" { policy = "READ" }`, "service:a read deny"},
		{`service "a" { policy = "READ" } --- service "a" { policy = "DENY" }`, "service:a read allow"},
		{`operator = "WRITE"`, "operator read deny"},
		{`acl = "read" --- acl = "write"`, "acl write allow"},
		// Lookup.
		{`service "ab" { policy = "read" } service_prefix "a" { policy = "write" }`, "service:ab write deny; service:abc write allow; service:b read deny"},
		{`service "ab" { policy = "write" } service_prefix "a" { policy = "deny" }`, "service:ab write allow; service:abc read deny"},
		{`node_prefix "a" { policy = "write" } node_prefix "ab" { policy = "read" }`, "node:abc write deny; node:ac write allow; node:ab write deny"},
		{`key "" { policy = "write" }`, "key: write allow; key:a read deny"},
		{`key_prefix "" { policy = "read" }`, "key: read allow; key:a read allow"},
		// Intentions of *.
		{`service "a" { policy = "read" }`, "intention:* read allow; intention:* write deny"},
		{`service_prefix "" { policy = "deny" }`, "intention:* read deny"},
		{`service_prefix "" { policy = "deny" } service "a" { policy = "read" }`, "intention:* read allow"},
		{`service_prefix "" { policy = "read" intentions = "write" }`, "intention:* write allow"},
		{`service_prefix "" { policy = "read" intentions = "write" } service "a" { policy = "write" }`, "intention:* write deny"},
		{`service "*" { policy = "read" intentions = "write" }`, "intention:* write deny; service:* read allow"},
		// write-prefix.
		{`key_prefix "a/" { policy = "write" }`, "key:a/ write-prefix allow; key:a/b write-prefix allow; key:a write-prefix deny"},
		{`key_prefix "a/" { policy = "write" } key "a/b/c" { policy = "list" }`, "key:a/ write-prefix deny; key:a/b write-prefix deny; key:a/d write-prefix allow"},
		{`key_prefix "a/" { policy = "list" } key_prefix "a/b" { policy = "write" }`, "key:a/ write-prefix deny; key:a/b/c write-prefix allow"},
		{`key "a/" { policy = "read" } key_prefix "" { policy = "write" }`, "key:a/ write-prefix deny"},
		// Inheritance.
		{`operator = "write"`, "mesh write allow; peering write allow"},
		{`operator = "write" --- mesh = "read"`, "mesh write deny; peering write allow; operator write allow"},
		{`mesh = "write"`, "operator read deny; peering read deny; mesh write allow"},
		{`acl = "write"`, "acl write allow; operator read deny; service:a read deny"},
		{`session_prefix "n" { policy = "write" } event "e" { policy = "write" } query "q" { policy = "read" } agent "n" { policy = "read" }`,
			"session:n1 write allow; event:e write allow; query:q read allow; query:q write deny; agent:n read allow; keyring read deny"},
	} {
		table := Merge(pool(t, strings.Split(c.policies, "---")...), Options{Default: Denied})
		for _, line := range strings.Split(c.want, "; ") {
			at := strings.LastIndexByte(line, ' ')
			if d := table.Decide(query(t, line[:at])); d.Verdict.String() != line[at+1:] {
				t.Errorf("%s\n%s: got %s", c.policies, line, d.Verdict)
			}
		}
	}
}

func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	rules := pool(t, `service "a" { policy = "deny" } key_prefix "a/" { policy = "write" }`)
	for text, want := range map[string]string{
		"service:b write": "allow", "service:a read": "deny", "acl read": "deny", "acl write": "deny", "operator write": "allow",
		"intention:* write": "deny", "intention:b write": "allow", "key:b write-prefix": "allow", "mesh read": "allow",
	} {
		if d := Merge(rules, Options{Default: Allowed}).Decide(query(t, text)); d.Verdict.String() != want {
			t.Errorf("%s: got %s, want %s", text, d.Verdict, want)
		}
	}
	x := Merge(rules, Options{}).Explain(query(t, "service:b write"))
	if x.Verdict != Unknown || x.Why != "no rule applies, and the default policy is not known: a token with acl:read can read it" {
		t.Errorf("without a default: %s, %q", x.Verdict, x.Why)
	}
}

// With partial rules only a deny that nothing outranks is definite.
func TestIncompleteIsUnknown(t *testing.T) {
	t.Parallel()
	rules := pool(t, `
service "denied" { policy = "deny" }
service "odd" { policy = "DENY" }
service "granted" { policy = "write" }
service "intent" { policy = "read" intentions = "deny" }
service_prefix "no" { policy = "deny" }
key "a/b" { policy = "deny" }
key_prefix "k/" { policy = "deny" }
operator = "deny"
acl = "read"
`)
	for text, want := range map[string]string{
		"service:denied read": "deny", "service:odd read": "unknown", "service:granted write": "unknown", "service:granted read": "unknown",
		"service:no-where read": "unknown", "service:other read": "unknown",
		"intention:denied read": "unknown", "intention:intent read": "deny", "intention:* read": "unknown", "intention:* write": "unknown",
		"key:a/b read": "deny", "key:a write-prefix": "deny", "key:k/ write-prefix": "unknown",
		"operator read": "deny", "mesh read": "unknown", "acl write": "unknown", "acl read": "unknown",
	} {
		table := Merge(rules, Options{Default: Denied, Incomplete: true})
		if d := table.Decide(query(t, text)); d.Verdict.String() != want {
			t.Errorf("%s: got %s, want %s", text, d.Verdict, want)
		}
	}
}

// scatter makes policies whose rules meet: few names, every kind and level.
func scatter(r *rand.Rand) string {
	names := []string{"", "a", "ab", "abc", "b", "a/", "a/b"}
	levels := []string{"deny", "read", "write", "deny", "write", "READ", "Write"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	var text strings.Builder
	for range r.IntN(12) {
		resources := Segmented()
		resource := resources[r.IntN(len(resources))]
		if r.IntN(3) == 0 {
			resource = []Resource{Service, Key}[r.IntN(2)]
		}
		if r.IntN(6) == 0 {
			fmt.Fprintf(&text, "%s = %q\n", Scalars()[r.IntN(5)], pick(levels))
			continue
		}
		rule := Rule{Resource: resource, Prefix: r.IntN(2) == 0, Segment: pick(names), Level: pick(levels)}
		if resource == Key && r.IntN(4) == 0 {
			rule.Level = "list"
		}
		if resource == Service && r.IntN(3) == 0 {
			rule.Intentions = pick(levels)
		}
		text.WriteString(rule.HCL() + "\n")
	}
	return text.String()
}

// ask returns a random query.
func ask(r *rand.Rand) Query {
	names := []string{"", "a", "ab", "abc", "abcd", "b", "*", "a/", "a/b", "a/b/c"}
	all := append(append(Scalars(), Segmented()...), Intention)
	q := Query{Resource: all[r.IntN(len(all))], Segment: names[r.IntN(len(names))], Access: []Access{ReadAccess, WriteAccess}[r.IntN(2)]}
	if q.Resource == Key {
		q.Access = []Access{ReadAccess, ListAccess, WriteAccess, WritePrefix}[r.IntN(4)]
	}
	return q
}

// More knowledge never contradicts a definite answer: what was decided of part
// of the rules stays decided with all of them.
func TestPartialAnswersHold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	definite := 0
	for range testkit.Share(4000) {
		rules := pool(t, scatter(r), scatter(r), scatter(r))
		part := rules[:r.IntN(len(rules)+1)]
		q := ask(r)
		d := Merge(part, Options{Default: Denied, Incomplete: true}).Decide(q)
		if d.Verdict == Unknown {
			continue
		}
		definite++
		if all := Merge(rules, Options{Default: Denied}).Decide(q); all.Verdict != d.Verdict {
			t.Fatalf("%s: %s of a part, %s of all", q, d.Verdict, all.Verdict)
		}
	}
	if definite < testkit.Share(50) {
		t.Errorf("only %d were definite: the test shows nothing", definite)
	}
}

// What Explain proposes turns the answer, no line of it is needless, and what it calls the
// winner is the rule without which the answer has another reason.
func TestChangeTurnsTheAnswer(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	for n := range testkit.Share(6000) {
		o := Options{Default: []Verdict{Denied, Allowed}[n%2]}
		rules := pool(t, scatter(r), scatter(r))
		q := ask(r)
		x := Merge(rules, o).Explain(q)
		if (x.Winner.Rule == "") != (x.Why != "") {
			t.Fatalf("%s: winner %v, why %q", q, x.Winner, x.Why)
		}
		var changed []Sourced
		for _, s := range rules {
			if slices.ContainsFunc(x.Change.Remove, func(gone Sourced) bool { return gone.Rule == s.Rule }) {
				if q.Resource != Intention {
					continue
				}
				s.Rule = s.Rule.withoutIntentions()
			}
			changed = append(changed, s)
		}
		after := func(added string) Verdict {
			return Merge(append(slices.Clone(changed), pool(t, added)...), o).Decide(q).Verdict
		}
		if v := after(x.Change.Add); v == x.Verdict || v == Unknown {
			t.Fatalf("%s is %s, and %s after adding %q and removing %v:\n%s", q, x.Verdict, v, x.Change.Add, x.Change.Remove, texts(rules))
		}
		lines := strings.Split(x.Change.Add, "\n")
		for i := range lines {
			keeps := q.Resource == Service && strings.Contains(lines[i], "intentions")
			if adds := x.Change.Add != "" && x.Verdict == Denied; !adds || keeps {
				continue
			}
			if after(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")) == Allowed {
				t.Fatalf("%s, default %s: adding %q is needless after removing %v:\n%s", q, o.Default, lines[i],
					x.Change.Remove, texts(rules))
			}
		}
	}
}

// A rule that is removed takes what it states of intentions with it.
func TestChangeKeepsIntentions(t *testing.T) {
	t.Parallel()
	const mixed = `service "a" { policy = "deny" intentions = "write" } `
	for text, want := range map[string]string{
		mixed: `service "a" { policy = "write" intentions = "write" }`,
		mixed + `service_prefix "" { policy = "write" }`:                                             `service "a" { policy = "write" intentions = "write" }`,
		mixed + `service "a" { policy = "write" }`:                                                   `service "a" { policy = "write" intentions = "write" }`,
		mixed + `service "a" { policy = "write" intentions = "write" }`:                              "",
		`service "a" { policy = "deny" intentions = "deny" } service_prefix "" { policy = "write" }`: `service "a" { policy = "write" intentions = "deny" }`,
	} {
		if c := Merge(pool(t, text), Options{Default: Denied}).Explain(query(t, "service:a write")).Change; len(c.Remove) != 1 || c.Add != want {
			t.Errorf("%s: got %+v, want to add %q", text, c, want)
		}
	}
	read := Merge(pool(t, mixed+`service_prefix "" { policy = "write" }`), Options{Default: Denied}).Explain(query(t, "service:a read")).Change
	if want := `service "a" { policy = "write" intentions = "write" }`; read.Add != want {
		t.Errorf("got %q, want %q", read.Add, want)
	}
}

// A scalar counts again when a later one of the same policy is removed.
func TestChangeRemovesARepeatedScalar(t *testing.T) {
	t.Parallel()
	c := Merge(pool(t, "operator = \"write\"\nOperator = \"deny\"\noperator = \"deny\""), Options{Default: Denied}).Explain(query(t, "operator read")).Change
	var got []string
	for _, s := range c.Remove {
		got = append(got, fmt.Sprintf("%d %s", s.Rule.Line, s.Rule.Level))
	}
	if want := []string{"3 deny", "2 deny", "1 write"}; !slices.Equal(got, want) || c.Add != `operator = "read"` {
		t.Errorf("removes %q, want %q, adds %q", got, want, c.Add)
	}
}

// Removing a deny is enough where the rest grants what is asked.
func TestChangeIsTheSmallest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`service "a" { policy = "deny" } service_prefix "" { policy = "write" }`:                                               "1 ",
		`service "a" { policy = "deny" } service "a" { policy = "write" }`:                                                     "1 ",
		`service "a" { policy = "deny" } service_prefix "" { policy = "read" }`:                                                `1 service "a" { policy = "write" }`,
		`service "a" { policy = "read" }`:                                                                                      `0 service "a" { policy = "write" }`,
		`service_prefix "a" { policy = "deny" }`:                                                                               `0 service "a" { policy = "write" }`,
		`service "a" { policy = "deny" intentions = "write" } service "a" { policy = "deny" } service "b" { policy = "deny" }`: `2 service "a" { policy = "write" intentions = "write" }`,
	} {
		c := Merge(pool(t, text), Options{Default: Denied}).Explain(query(t, "service:a write")).Change
		if got := fmt.Sprintf("%d %s", len(c.Remove), c.Add); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	rights := Merge(pool(t, `service "a" { policy = "write" intentions = "deny" } service_prefix "" { policy = "read" intentions = "write" }`), Options{Default: Denied})
	for asked, want := range map[string]string{"intention:a read": "", "intention:a write": `service "a" { policy = "write" intentions = "write" }`} {
		if c := rights.Explain(query(t, asked)).Change; len(c.Remove) != 1 || c.Add != want {
			t.Errorf("%s: got %+v, want to add %q", asked, c, want)
		}
	}
	c := Merge(pool(t, `operator = "write" mesh = "deny"`), Options{Default: Denied}).Explain(query(t, "mesh write")).Change
	if len(c.Remove) != 1 || c.Add != "" {
		t.Errorf("operator's level counts again: %+v", c)
	}
}

func texts(rules []Sourced) string {
	var b strings.Builder
	for _, s := range rules {
		fmt.Fprintf(&b, "%s: %s\n", s.Source, s.Rule.HCL())
	}
	return b.String()
}
