package consulutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func resolve(r *ACLReader, s aclrules.Subject) aclrules.Resolution {
	return aclrules.Resolver{Objects: r, Datacenter: "dc1", Now: time.Now()}.Resolve(context.Background(), s)
}

// A policy that ten roles share is read once, or comes with the token.
func TestSharedPolicyIsReadOnceFromTheServer(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	shared := o.policy("shared")
	var links []aclrules.Link
	token := &api.ACLToken{}
	for i := range 10 {
		role := o.role(fmt.Sprint("role-", i), shared)
		links = append(links, aclrules.Link{ID: role.ID})
		token.Roles = append(token.Roles, &api.ACLLink{ID: role.ID})
	}
	token = o.token(token)

	c := newCounter(t)
	if found := resolve(c.reader(t, testkit.ManagementToken),
		aclrules.Subject{Token: token.AccessorID}); len(found.Rules) != 1 || len(found.Errors) > 0 {
		t.Fatalf("got %+v", found)
	}
	if n := c.requests("/"); n != 1 {
		t.Errorf("a token took %d requests: %v", n, c.asked)
	}
	c = newCounter(t)
	r := c.reader(t, testkit.ManagementToken)
	for range 3 {
		if found := resolve(r, aclrules.Subject{Roles: links}); len(found.Rules) != 1 || len(found.Errors) > 0 {
			t.Fatalf("got %+v", found)
		}
	}
	if policies, roles := c.requests("/v1/acl/policy/"), c.requests("/v1/acl/role/"); policies != 1 || roles != 10 {
		t.Errorf("policy read %d times, roles %d times", policies, roles)
	}
	// By name, and then by the ID that the name led to.
	c = newCounter(t)
	r = c.reader(t, testkit.ManagementToken)
	if found := resolve(r,
		aclrules.Subject{PolicyLinks: []aclrules.Link{{Name: shared.Name}, {ID: shared.ID, Name: shared.Name}}}); len(
		found.Rules) != 1 {
		t.Fatalf("got %+v", found)
	}
	if n := c.requests("/v1/acl/policy/"); n != 1 {
		t.Errorf("read %d times: %v", n, c.asked)
	}
}

// Without acl:read a token sees its own links, and nothing behind them.
func TestOrdinaryTokenSeesItsLinksOnly(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	p := o.policy("p")
	role := o.role("r", o.policy("q"))
	token := o.token(
		&api.ACLToken{Policies: []*api.ACLLink{{ID: p.ID}}, Roles: []*api.ACLLink{{ID: role.ID}},
			ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: o.name("web")}}})
	r := NewACLReader(client(t, secured, token.SecretID), "")
	found := resolve(r, aclrules.Subject{Self: true})
	at := "token " + token.AccessorID[:8] + "… → "
	want := []string{
		at + fmt.Sprintf("policy %q: it is not readable with this token: a token with acl:read can read it", p.Name),
		at + fmt.Sprintf("role %q: it is not readable with this token: a token with acl:read can read it", role.Name),
	}
	var got []string
	for _, err := range found.Errors {
		if !errors.Is(err, aclrules.ErrUnreadable) {
			t.Errorf("%v", err)
		}
		got = append(got, err.Error())
	}
	if !slices.Equal(got, want) || len(found.Rules) != 4 {
		t.Errorf("got %q and %d rules", got, len(found.Rules))
	}
	if found := resolve(r, aclrules.Subject{Token: o.token(&api.ACLToken{}).AccessorID}); len(found.Errors) != 1 ||
		!errors.Is(found.Errors[0], aclrules.ErrUnreadable) {
		t.Errorf("another's token: %+v", found)
	}
	if v := r.DefaultPolicy(context.Background()); v != aclrules.Denied {
		t.Errorf("the header of an answer has the default policy for every token: %s", v)
	}
}

func TestDanglingLinks(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	p, role := o.policy("p"), o.role("r")
	_, err := o.acl.PolicyDelete(p.ID, nil)
	_, err2 := o.acl.RoleDelete(role.ID, nil)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	r := NewACLReader(client(t, secured, testkit.ManagementToken), "")
	found := resolve(r, aclrules.Subject{
		PolicyLinks: []aclrules.Link{{ID: p.ID}, {Name: p.Name}},
		Roles:       []aclrules.Link{{ID: role.ID}, {Name: role.Name}},
	})
	testkit.Equal(t, "notes", len(found.Notes), 4)
	if len(found.Errors) > 0 || !errors.Is(errors.Join(found.Notes...), aclrules.ErrDangling) {
		t.Errorf("got %+v", found)
	}
	if _, _, err := r.AuthMethod(context.Background(), o.name("none")); err == nil ||
		err.Error() != "there is no such auth method" {
		t.Errorf("auth method: %v", err)
	}
}

// The server's words for a token that is not there and for a reader that is not
// are nearly the same, and mean the opposite: a denial, and not knowing.
func TestUnknownTokens(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	const unknown = "11111111-0000-4000-8000-00000000000a"
	known := o.token(&api.ACLToken{}).AccessorID
	gone := o.token(&api.ACLToken{})
	if _, err := o.acl.TokenDelete(gone.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reader  string
		subject aclrules.Subject
		refused bool
	}{
		"no such accessor":       {testkit.ManagementToken, aclrules.Subject{Token: unknown}, true},
		"deleted":                {testkit.ManagementToken, aclrules.Subject{Token: gone.AccessorID}, true},
		"itself deleted":         {gone.SecretID, aclrules.Subject{Self: true}, true},
		"itself unknown":         {unknown, aclrules.Subject{Self: true}, true},
		"read by a deleted one":  {gone.SecretID, aclrules.Subject{Token: known}, false},
		"read by an unknown one": {unknown, aclrules.Subject{Token: known}, false},
	} {
		found := resolve(NewACLReader(client(t, secured, c.reader), ""), c.subject)
		if c.refused != errors.Is(found.Refused, aclrules.ErrNotFound) || c.refused == (len(found.Errors) > 0) {
			t.Errorf("%s: %+v", name, found)
		}
		if !c.refused && !errors.Is(found.Errors[0], ErrUnknownReader) {
			t.Errorf("%s: %v", name, found.Errors)
		}
	}
}

// A request without a token has the anonymous one, and sees what it links to.
func TestOpenWithoutATokenIsAnonymous(t *testing.T) {
	t.Setenv("CONSUL_HTTP_TOKEN", "")
	r, err := OpenACLReader(Options{Address: secured.Require(t).HTTPAddr}, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := r.Token(context.Background(), "")
	if err != nil || token.Accessor != aclrules.Anonymous {
		t.Errorf("got %+v, %v", token, err)
	}
	found := resolve(r, aclrules.Subject{Self: true})
	if found.Refused != nil || len(found.Errors)+len(found.Rules) > 0 {
		t.Errorf("got %+v", found)
	}
}

// An expanded token has the default policy; so does a server that allows.
func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	r := NewACLReader(client(t, secured, testkit.ManagementToken), "")
	if v := r.DefaultPolicy(context.Background()); v != aclrules.Denied {
		t.Errorf("got %s", v)
	}
	lenient, err := testkit.StartConsul(testkit.ConsulOptions{HCL: `acl { enabled = true default_policy = "allow" }`})
	if err != nil {
		t.Fatal(err)
	}
	defer lenient.Stop()
	lenient.Require(t)
	r, err = OpenACLReader(Options{Address: lenient.HTTPAddr, Token: "anonymous"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if v := r.DefaultPolicy(context.Background()); v != aclrules.Allowed {
		t.Errorf("got %s", v)
	}
	if dc, err := r.Datacenter(context.Background()); dc != "dc1" || err != nil {
		t.Errorf("datacenter %q, %v", dc, err)
	}
}

func TestServerWithoutACLs(t *testing.T) {
	t.Parallel()
	r, err := OpenACLReader(Options{Address: open.Require(t).HTTPAddr, Token: "x"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]aclrules.Subject{
		"itself": {Self: true}, "accessor": {Token: "x"}, "policy": {PolicyLinks: []aclrules.Link{{ID: "x"}}},
		"role": {Roles: []aclrules.Link{{Name: "x"}}}, "login": {Login: &aclrules.Login{Method: "x"}},
	} {
		if found := resolve(r, s); !errors.Is(found.Disabled, aclrules.ErrDisabled) || len(found.Errors) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if _, err := r.Export(context.Background()); !errors.Is(err, aclrules.ErrDisabled) {
		t.Errorf("export: %v", err)
	}
}
