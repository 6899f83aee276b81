package aclrules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

type source string

func (s source) String() string { return string(s) }

// found resolves policies by name: "name: text".
func found(t *testing.T, policies ...string) Resolution {
	t.Helper()
	var r Resolution
	for _, p := range policies {
		name, text, _ := strings.Cut(p, ": ")
		parsed, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range parsed {
			r.Rules = append(r.Rules, Sourced{Rule: rule, Source: source(name)})
		}
	}
	return r
}

func answerQuery(t *testing.T, text string) Query {
	t.Helper()
	at := strings.LastIndexByte(text, ' ')
	q, err := ParseQuery(text[:at], text[at+1:])
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// questions returns subjects, each with a question.
func questions(t *testing.T) []question {
	ops := found(t,
		"token 3f2a1b0c… → role \"ops\" → policy \"ops\": key_prefix \"app/\" { policy = \"write\" }\nservice_prefix "+
			"\"\" {\n  policy = \"write\"\n}\noperator = \"write\"",
		"token 3f2a1b0c… → role \"ops\" → policy \"freeze\": # since June\nservice \"web\" { policy = \"deny\" }",
		"token 3f2a1b0c… → service identity \"web\": "+
			"{\"service\":{\"web\":{\"policy\":\"write\"}},\"service_prefix\":{\"\":{\"policy\":\"read\"}}}",
	)
	noted := ops
	noted.Notes = []error{errors.New("token 3f2a1b0c… → policy \"eu-only\": it applies in dc2 only, and this is dc1")}
	partial := noted
	partial.Errors = []error{errors.New("token 3f2a1b0c… → policy \"hidden\": it is not readable with this token: a token with acl:read can read it")}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("token 1395597c… → policy \"team-%d\": service_prefix \"\" { policy "+
			"= \"read\" }", i))
	}
	crowd := found(t, append(many, "token 1395597c… → policy \"global-management\": acl = \"write\"\nservice_prefix "+
		"\"\" { policy = \"write\" }")...)
	return []question{
		{"denied", ops, "service:web write", nil},
		{"allowed", ops, "key:app/x write", nil},
		{"default", noted, "node:n read", nil},
		{"authority", ops, "operator write", nil},
		{"root", crowd, "acl write", nil},
		{"crowd", crowd, "service:web write", nil},
		{"partial-denied", partial, "service:web write", nil},
		{"partial-unknown", partial, "service:api write", nil},
		{"partial-server", partial, "service:api write", allow()},
		{"agreed", ops, "service:web write", deny()},
		{"disagreed", ops, "service:web write", allow()},
		{"refused", Resolution{Refused: fmt.Errorf("the token: %w", ErrNotFound)}, "service:web write", nil},
		{"disabled", Resolution{Disabled: ErrDisabled}, "acl write", nil},
	}
}

type question struct {
	name   string
	found  Resolution
	query  string
	server *bool
}

func allow() *bool { return new(true) }
func deny() *bool  { return new(false) }

func (s question) answer(t *testing.T) (*Report, Answer) {
	t.Helper()
	r := NewReport(s.found, Denied)
	a := r.Can(answerQuery(t, s.query))
	if s.server != nil {
		a = a.Compare(*s.server)
	}
	return r, a
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every kind of answer, as printed to a pipe and on a terminal, and as
// machines do.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	var lines, plain, tree, data strings.Builder
	for _, s := range questions(t) {
		r, a := s.answer(t)
		fmt.Fprintf(&lines, "%s\n", a.Sentence(20))
		fmt.Fprintf(&plain, "--- %s\n%s", s.name, r.Explain(a, false))
		fmt.Fprintf(&tree, "--- %s\n%s", s.name, r.Explain(a, true))
		if s.name != "crowd" { // a hundred losers
			data.WriteString(encoded(t, a) + encoded(t, r.Explained(a)))
		}
	}
	testkit.Golden(t, "can.txt", []byte(lines.String()))
	testkit.Golden(t, "explain.txt", []byte(plain.String()))
	testkit.Golden(t, "explain.tree.txt", []byte(tree.String()))
	testkit.Golden(t, "answers.jsonl", []byte(data.String()))
}

func TestGoldenRules(t *testing.T) {
	t.Parallel()
	for _, s := range questions(t) {
		if s.name != "partial-denied" {
			continue
		}
		r, _ := s.answer(t)
		testkit.Golden(t, "rules.hcl", []byte(r.HCL()))
		var data strings.Builder
		for _, m := range r.Merged() {
			data.WriteString(encoded(t, m))
		}
		testkit.Golden(t, "rules.jsonl", []byte(data.String()))
		if _, err := Parse(r.HCL()); err != nil {
			t.Errorf("what rules prints is no policy: %v", err)
		}
	}
}

// A crowd of rules that lost alike is a few lines of text, and all of them
// for machines.
func TestManyLosingRulesAreSummarized(t *testing.T) {
	t.Parallel()
	for _, s := range questions(t) {
		if s.name != "crowd" {
			continue
		}
		r, a := s.answer(t)
		if n := strings.Count(r.Explain(a, false), "\n"); n > 15 {
			t.Errorf("%d lines", n)
		}
		if n := len(r.Explained(a).Losers); n != 100 {
			t.Errorf("%d losers", n)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours    Verdict
		allowed bool
		want    string
		worst   Verdict
	}{
		{Allowed, true, "allow", Allowed},
		{Denied, false, "deny", Denied},
		{Unknown, true, "allow", Allowed},
		{Unknown, false, "deny", Denied},
		// The server's no is a no; its yes against our no is not believed.
		{Allowed, false, Disagree, Denied},
		{Denied, true, Disagree, Unknown},
	} {
		a := Answer{Decision: c.ours.String()}.Compare(c.allowed)
		if a.Decision != c.want || WorstAnswer([]Answer{a}) != c.worst {
			t.Errorf("%s and %v: %s, worst %s", c.ours, c.allowed, a.Decision, WorstAnswer([]Answer{a}))
		}
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Verdict{
		"": Allowed, "allow allow": Allowed, "allow unknown allow": Unknown,
		"unknown deny": Denied, "deny unknown": Denied, "deny allow": Denied,
	} {
		var answers []Answer
		for _, decision := range strings.Fields(text) {
			answers = append(answers, Answer{Decision: decision})
		}
		if got := WorstAnswer(answers); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// The reasons stand below each other, and a very long query does not push those
// of all others out of sight.
func TestWidth(t *testing.T) {
	t.Parallel()
	r := NewReport(Resolution{}, Denied)
	long := "key:" + strings.Repeat("x", 60) + " read"
	answers := []Answer{r.Can(answerQuery(t, "acl read")), r.Can(answerQuery(t, "service:web write")),
		r.Can(answerQuery(t, long))}
	const reason = "no rule applies: the default policy is deny"
	for i, want := range []string{"deny     acl read           " + reason, "deny     service:web write  " + reason,
		"deny     " + long + "  " + reason} {
		if got := answers[i].Sentence(Width(answers)); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
