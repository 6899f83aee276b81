package aclrules

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

var expires = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// full returns one of everything.
func full() *Snapshot {
	return &Snapshot{
		Version: Version, Datacenter: "dc1", DefaultPolicy: "deny",
		Policies: []Policy{
			{ID: "p1", Name: "web <w>", Rules: "service \"web\" { policy = \"write\" }\n"},
			{ID: "p2", Name: "eu", Rules: `acl = "write"`, Datacenters: []string{"dc2"}},
		},
		Roles: []Role{{ID: "r1", Name: "ops", Grants: Grants{Policies: []Link{{ID: "p1", Name: "web <w>"}}}}},
		Tokens: []Token{{Accessor: "t1", Description: "one", Expires: expires, Grants: Grants{
			Policies: []Link{{ID: "p2", Name: "eu"}}, Roles: []Link{{ID: "r1", Name: "ops"}},
			ServiceIdentities: []ServiceIdentity{{Name: "web", Datacenters: []string{"dc1"}}},
			NodeIdentities:    []NodeIdentity{{Name: "n", Datacenter: "dc1"}},
			TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/dns"},
				{Template: "builtin/node", Name: "n", Datacenters: []string{"dc1"}}},
		}}, {Accessor: "t2"}},
		AuthMethods: []AuthMethod{{Name: "iam", Type: "aws-iam", EntityDetails: true, EntityTags: []string{"service"}},
			{Name: "jwt", Type: "jwt", Values: []string{"team"}, Lists: []string{"groups"}}},
		Bindings: map[string][]BindingRule{"iam": {{ID: "b1", Selector: `entity_name == "x"`,
			BindType: "templated-policy", BindName: "builtin/node", Variable: "${entity_name}"}}, "jwt": nil},
		Templates: map[string]string{"builtin/node": `node "{{.Name}}" { policy = "write" }`},
	}
}

// The file's format is a promise: later versions read files of earlier ones.
func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := full().Write(&b); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "export.json", b.Bytes())
	got, err := ReadSnapshot(&b)
	if diff := cmp.Diff(full(), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "read the export: EOF",
		"[]":                               "read the export: json: cannot unmarshal array",
		`{"version":1,"polices":[]}`:       `read the export: json: unknown field "polices"`,
		`{"version":2}`:                    "read the export: version 2: want 1, as this program's acl export writes it",
		`{}`:                               "read the export: version 0: want 1",
		`{"version":1,"tokens":[{"x":1}]}`: `unknown field "x"`,
	} {
		s, err := ReadSnapshot(strings.NewReader(text))
		testkit.ErrorContains(t, err, want)
		if s != nil {
			t.Errorf("%q: %v, want no snapshot", text, s)
		}
	}
}

func TestSnapshotHasItsObjects(t *testing.T) {
	t.Parallel()
	s, ctx := full(), context.Background()
	for _, l := range []Link{{ID: "p1"}, {Name: "web <w>"}, {Name: "WEB <W>"}, {ID: "p1", Name: "renamed"}} {
		if p, err := s.Policy(ctx, l); err != nil || p.ID != "p1" {
			t.Errorf("policy %v: %v, %v", l, p, err)
		}
	}
	for _, l := range []Link{{ID: "r1"}, {Name: "ops"}, {Name: "Ops"}} {
		if r, err := s.Role(ctx, l); err != nil || r.ID != "r1" {
			t.Errorf("role %v: %v, %v", l, r, err)
		}
	}
	for _, l := range []Link{{}, {ID: "x", Name: "ops"}, {Name: "op"}, {ID: "ops"}} {
		_, err := s.Policy(ctx, l)
		_, err2 := s.Role(ctx, l)
		if !errors.Is(err, ErrDangling) || !errors.Is(err2, ErrDangling) {
			t.Errorf("%v: %v, %v", l, err, err2)
		}
	}
	if token, err := s.Token(ctx, "T1"); err != nil || token.Description != "one" {
		t.Errorf("token: %v, %v", token, err)
	}
	if _, err := s.Token(ctx, "t9"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no token: %v", err)
	}
	if _, err := s.Token(ctx, ""); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a file's own token: %v", err)
	}
	if m, _, err := s.AuthMethod(ctx, "jwt"); err != nil || m.Type != "jwt" {
		t.Errorf("auth method: %v, %v", m, err)
	}
	if _, _, err := s.AuthMethod(ctx, "none"); err == nil {
		t.Error("no auth method, and no error")
	}
	if _, rules, err := s.AuthMethod(ctx, "IAM"); err != nil || len(rules) != 1 {
		t.Errorf("binding rules: %v, %v", rules, err)
	}
	if text, err := s.Template(ctx, "builtin/node"); err != nil || text == "" {
		t.Errorf("template: %q, %v", text, err)
	}
	if _, err := s.Template(ctx, "builtin/dns"); !errors.Is(err, ErrDangling) {
		t.Errorf("no template: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := full().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"version":1,"binding_rules":{"m":[{"bind_type":"role","bind_name":"${x}"}]},"auth_methods":[{"name":"m","type":"jwt"}]}`)
	f.Add(`{"version":1,"policies":[{"name":"p","rules":"{"}],"tokens":[{"templated_policies":[{"template":"builtin/nomad-server"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadSnapshot(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, finding := range s.Lint() {
			if slices.Contains([]string{finding.Object, finding.Code, finding.Message}, "") {
				t.Errorf("finding %+v, want an object, a code and a message", finding)
			}
		}
		var again bytes.Buffer
		if err := s.Write(&again); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSnapshot(&again); err != nil {
			t.Errorf("what was read and written cannot be read: %v", err)
		}
	})
}

// A token or role keeps the ID of a link as it was written, and Consul reads its digits only.
func TestSnapshotReadsIDsAsConsulDoes(t *testing.T) {
	t.Parallel()
	const (
		canonical = "c2522891-dcf0-4058-cce5-11ea9ec7371a"
		upper     = "C2522891-DCF0-4058-CCE5-11EA9EC7371A"
		shifted   = "c25228-91dcf0-4058-cce5-11ea9ec7371a"
	)
	s := &Snapshot{
		Policies: []Policy{{ID: canonical, Name: "p"}}, Roles: []Role{{ID: canonical, Name: "r"}},
		Tokens: []Token{{Accessor: canonical}, {Accessor: upper[:35] + "B"}},
	}
	for _, id := range []string{canonical, upper, shifted} {
		if _, err := s.Policy(t.Context(), Link{ID: id}); err != nil {
			t.Errorf("policy %s: %v", id, err)
		}
		if _, err := s.Role(t.Context(), Link{ID: id}); err != nil {
			t.Errorf("role %s: %v", id, err)
		}
		if _, err := s.Token(t.Context(), id); err != nil {
			t.Errorf("token %s: %v", id, err)
		}
	}
	if _, err := s.Token(t.Context(), canonical[:35]+"b"); err != nil {
		t.Errorf("a token whose accessor is in upper case: %v", err)
	}
	if _, err := s.Policy(t.Context(), Link{ID: canonical[:35] + "b"}); !errors.Is(err, ErrDangling) {
		t.Errorf("another policy: %v, want %v", err, ErrDangling)
	}
}
