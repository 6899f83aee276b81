package consulutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// furnished returns a server with one of everything, and a login's method.
func furnished(t *testing.T) (o *objects, token *api.ACLToken, login aclrules.Login) {
	t.Helper()
	o = newObjects(t)
	role := o.role("ops", o.policy("shared"), o.policy("other"))
	token = o.token(&api.ACLToken{
		Description: o.salt, Roles: []*api.ACLLink{{ID: role.ID}},
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: o.name("web"), Datacenters: []string{"dc1", "dc2"}}},
		NodeIdentities:    []*api.ACLNodeIdentity{{NodeName: o.name("node"), Datacenter: "dc2"}},
		TemplatedPolicies: []*api.ACLTemplatedPolicy{{TemplateName: aclrules.APIGatewayTemplate,
			TemplateVariables: &api.ACLTemplatedPolicyVariables{Name: o.name("gw")}}},
		ExpirationTTL: time.Hour,
	})
	method := &api.ACLAuthMethod{Name: o.name("iam"), Type: "aws-iam", Config: map[string]any{
		"BoundIAMPrincipalARNs": []string{"arn:aws:iam::123456789012:role/x/*"}, "EnableIAMEntityDetails": true,
		"IAMEntityTags": []string{"service", "team.x"},
	}}
	_, _, err := o.acl.AuthMethodCreate(method, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*api.ACLBindingRule{
		{AuthMethod: method.Name, Selector: `entity_tags["team.x"] == "blue"`, BindType: "role", BindName: role.Name},
		{AuthMethod: method.Name, BindType: "templated-policy", BindName: aclrules.APIGatewayTemplate,
			BindVars: &api.ACLTemplatedPolicyVariables{Name: o.salt + "-${entity_tags.service}"}},
	} {
		if _, _, err := o.acl.BindingRuleCreate(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	return o, token, aclrules.Login{Method: method.Name,
		Entity: aclrules.Entity{Name: "r", Tags: map[string]string{"service": "Web", "team.x": "blue"}}}
}

// lines returns a resolution as text: sources and rules, notes and errors.
func lines(found aclrules.Resolution) []string {
	var all []string
	for _, s := range found.Rules {
		all = append(all, s.Source.String()+": "+s.Rule.HCL())
	}
	for _, err := range append(append(found.Notes, found.Errors...), found.Refused) {
		if err != nil {
			all = append(all, "!"+err.Error())
		}
	}
	slices.Sort(all)
	return all
}

// An export answers as the server does, after it was a file.
func TestExportAnswersAsTheServer(t *testing.T) {
	t.Parallel()
	o, token, login := furnished(t)
	server := NewACLReader(client(t, secured, testkit.ManagementToken), "")
	export, err := server.Export(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := export.Write(&file); err != nil {
		t.Fatal(err)
	}
	if secret := token.SecretID; strings.Contains(file.String(), secret) {
		t.Error("the file has a secret")
	}
	read, err := aclrules.ReadSnapshot(&file)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "datacenter", read.Datacenter, "dc1")
	testkit.Equal(t, "default policy", read.DefaultPolicy, "deny")
	testkit.Equal(t, "templates", len(read.Templates), 6)
	for name, s := range map[string]aclrules.Subject{
		"token": {Token: token.AccessorID}, "login": {Login: &login},
		"unknown": {Token: "11111111-0000-4000-8000-00000000000b"},
		"policy by name": {PolicyLinks: []aclrules.Link{{Name: o.name("shared")}, {Name: "none"}},
			Roles: []aclrules.Link{{Name: "none"}}},
	} {
		want := lines(
			aclrules.Resolver{Objects: server, Datacenter: "dc1", Now: time.Now()}.Resolve(context.Background(), s))
		got := lines(
			aclrules.Resolver{Objects: read, Datacenter: "dc1", Now: time.Now()}.Resolve(context.Background(), s))
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s (-server +export):\n%s", name, diff)
		}
	}
	late := aclrules.Resolver{Objects: read, Datacenter: "dc1", Now: time.Now().Add(2 * time.Hour)}
	if found := late.Resolve(context.Background(), aclrules.Subject{Token: token.AccessorID}); !errors.Is(found.Refused,
		aclrules.ErrExpired) {
		t.Errorf("the token outlives its time in the file: %+v", found)
	}
}

// What a login by a real auth method is read as.
func TestReadAuthMethod(t *testing.T) {
	t.Parallel()
	o, _, login := furnished(t)
	r := NewACLReader(client(t, secured, testkit.ManagementToken), "")
	m, _, err := r.AuthMethod(context.Background(), login.Method)
	want := aclrules.AuthMethod{Name: login.Method, Type: "aws-iam",
		EntityDetails: true, EntityTags: []string{"service", "team.x"}}
	if diff := cmp.Diff(want, m); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	l := newACLServer(t)
	jwt := &api.ACLAuthMethod{Name: o.name("jwt"), Type: "jwt", Config: map[string]any{
		"JWTValidationPubKeys": []string{l.public}, "BoundAudiences": []string{"test"},
		"ClaimMappings":     map[string]string{"a": "team", "b": "env"},
		"ListClaimMappings": map[string]string{"c": "groups"},
	}}
	if _, _, err := o.acl.AuthMethodCreate(jwt, nil); err != nil {
		t.Fatal(err)
	}
	m, _, err = r.AuthMethod(context.Background(), jwt.Name)
	want = aclrules.AuthMethod{Name: jwt.Name, Type: "jwt", Values: []string{"env", "team"}, Lists: []string{"groups"}}
	if diff := cmp.Diff(want, m); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	jwt = &api.ACLAuthMethod{Name: o.name("Weak"), Type: "jwt", Config: map[string]any{
		"jwtvalidationpubkeys": l.public, "boundaudiences": "test",
		"claimmappings": map[string]string{"a": "team"}, "LISTCLAIMMAPPINGS": map[string]string{"c": "groups"},
	}}
	if _, _, err := o.acl.AuthMethodCreate(jwt, nil); err != nil {
		t.Fatal(err)
	}
	m, _, err = r.AuthMethod(context.Background(), strings.ToUpper(jwt.Name))
	want = aclrules.AuthMethod{Name: jwt.Name, Type: "jwt", Values: []string{"team"}, Lists: []string{"groups"}}
	if diff := cmp.Diff(want, m); diff != "" || err != nil {
		t.Errorf("in other letter case: %v (-want +got):\n%s", err, diff)
	}
	iam := &api.ACLAuthMethod{Name: o.name("WeakIAM"), Type: "aws-iam", Config: map[string]any{
		"boundiamprincipalarns":  "arn:aws:iam::123456789012:role/*",
		"enableiamentitydetails": "true", "iamentitytags": "team",
	}}
	if _, _, err := o.acl.AuthMethodCreate(iam, nil); err != nil {
		t.Fatal(err)
	}
	m, _, err = r.AuthMethod(context.Background(), iam.Name)
	want = aclrules.AuthMethod{Name: iam.Name, Type: "aws-iam", EntityDetails: true, EntityTags: []string{"team"}}
	if diff := cmp.Diff(want, m); diff != "" || err != nil {
		t.Errorf("with texts: %v (-want +got):\n%s", err, diff)
	}
	found := resolve(r, aclrules.Subject{Login: &login})
	testkit.Equal(t, "rules of the login", len(found.Rules), 6)
	if problems := append(append(found.Errors, found.Notes...), found.Refused); errors.Join(problems...) != nil {
		t.Errorf("login: %q", lines(found))
	}
}

// The embedded templates equal the server's.
func TestEmbeddedTemplatesAreTheServers(t *testing.T) {
	t.Parallel()
	r := NewACLReader(client(t, secured, testkit.ManagementToken), "")
	for name, variable := range map[string]string{
		aclrules.ServiceTemplate: "web", aclrules.NodeTemplate: "n", aclrules.DNSTemplate: "",
		aclrules.APIGatewayTemplate: "gw", aclrules.NomadServerTemplate: "", aclrules.NomadClientTemplate: "",
	} {
		text, err := r.Template(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := aclrules.Render(text, variable)
		ours, err2 := aclrules.Template(name, variable)
		if err := errors.Join(err, err2); err != nil || !aclrules.EqualRules(ours, theirs) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if _, err := r.Template(context.Background(), "builtin/none"); !errors.Is(err, aclrules.ErrDangling) {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestExportNeedsToReadEverything(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	ordinary := o.token(&api.ACLToken{Description: o.salt})
	export, err := NewACLReader(client(t, secured, ordinary.SecretID), "").Export(context.Background())
	if export != nil || !errors.Is(err, aclrules.ErrUnreadable) {
		t.Errorf("got %v, %v", export, err)
	}
	testkit.Equal(t, "error", fmt.Sprint(err),
		"export policies: it is not readable with this token: a token with acl:read can read it")
	if _, err := NewACLReader(client(t, secured, "11111111-0000-4000-8000-00000000000c"),
		"").Export(context.Background()); !errors.Is(err, ErrUnknownReader) {
		t.Errorf("an unknown reader: %v", err)
	}
}

// Consul accepts an ID in any letter case and with its hyphens elsewhere, and keeps it like that in
// the token: the rights are those of the policy all the same.
func TestExportKnowsPoliciesByAnySpellingOfTheirIDs(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	const management = "000000000-000-0000-0000-000000000001"
	token := o.token(&api.ACLToken{Policies: []*api.ACLLink{{ID: management}}})
	role, _, err := o.acl.RoleCreate(&api.ACLRole{Name: o.name("root"), Policies: []*api.ACLLink{{ID: management}}},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	member := o.token(&api.ACLToken{Roles: []*api.ACLLink{{ID: strings.ToUpper(role.ID)}}})
	export, err := NewACLReader(client(t, secured, testkit.ManagementToken), "").Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, accessor := range map[string]string{"a policy": token.AccessorID, "a role": member.AccessorID} {
		report := aclrules.NewReport(
			aclrules.Resolver{Objects: export, Datacenter: "dc1"}.Resolve(t.Context(),
				aclrules.Subject{Token: accessor}), aclrules.Denied)
		got := report.Can(aclrules.Query{Resource: aclrules.ACL, Access: aclrules.WriteAccess}).Decision
		if got != aclrules.Allowed.String() {
			t.Errorf("acl write by %s that is linked by another spelling of its ID: %v, want %v",
				what, got, aclrules.Allowed)
		}
	}
}
