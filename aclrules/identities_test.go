package aclrules

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The server's text of a template counts where it can be read; what this program
// knows is the same, or it says so.
func TestTheServersTemplatesCount(t *testing.T) {
	t.Parallel()
	m := &memory{tokens: map[string]Token{"t": {Grants: Grants{TemplatedPolicies: []TemplatedPolicy{
		{Template: "builtin/dns"}, {Template: "builtin/node", Name: "n"}, {Template: "builtin/new", Name: "x"},
		{Template: "builtin/api-gateway", Name: "gw"}, {Template: "builtin/nomad-client"},
	}}}}}
	m.templates = map[string]string{
		"builtin/dns":         "node_prefix \"\" { policy = \"read\" }\nquery_prefix \"\" { policy = \"read\" }\nservice_prefix \"\" { policy = \"read\" }",
		"builtin/node":        `node "{{.Name}}" { policy = "deny" }`,
		"builtin/new":         `service "{{.Name}}" { policy = "read" }`,
		"builtin/api-gateway": `service "{{.Namespace}}/{{.Name}}" { policy = "read" }`,
	}
	found := m.resolver().Resolve(context.Background(), Subject{Token: "t"})
	var lines []string
	for _, s := range found.Rules {
		lines = append(lines, s.Source.String()+": "+s.Rule.Subject()+" = "+s.Rule.Level)
	}
	want(t, lines,
		`token t → templated policy "builtin/dns": node_prefix "" = read`,
		`token t → templated policy "builtin/dns": query_prefix "" = read`,
		`token t → templated policy "builtin/dns": service_prefix "" = read`,
		`token t → templated policy "builtin/node" of "n": node "n" = deny`,
		`token t → templated policy "builtin/new" of "x": service "x" = read`,
		`token t → templated policy "builtin/nomad-client": agent_prefix "" = read`,
		`token t → templated policy "builtin/nomad-client": node_prefix "" = read`,
		`token t → templated policy "builtin/nomad-client": service_prefix "" = write`,
		`token t → templated policy "builtin/nomad-client": key_prefix "" = read`)
	note := errors.Join(found.Notes...)
	if !errors.Is(note, errOtherTemplate) {
		t.Errorf("notes %v, want %v", note, errOtherTemplate)
	}
	testkit.Equal(t, "notes", fmt.Sprint(note), `token t → templated policy "builtin/node" of "n": the server's `+
		`template for it differs from the one this program knows, and the server's applies`)
	if len(found.Errors) != 1 || found.Errors[0].Error() != `token t → templated policy "builtin/api-gateway" of `+
		`"gw": the template needs more than a name` {
		t.Errorf("errors: %v", found.Errors)
	}
}

// A server without ACLs has nothing to resolve.
func TestDisabledACLsAreNoError(t *testing.T) {
	t.Parallel()
	m := &memory{errors: map[string]error{"token t": ErrDisabled, "method m": ErrDisabled}}
	for _, s := range []Subject{{Token: "t"}, {Login: web()}} {
		found := m.resolver().Resolve(context.Background(), s)
		if !errors.Is(found.Disabled, ErrDisabled) {
			t.Errorf("%+v: disabled %v, want %v", s, found.Disabled, ErrDisabled)
		}
		if err := errors.Join(append(found.Errors, found.Refused)...); err != nil {
			t.Errorf("%+v: errors %v", s, err)
		}
		if _, err := rulesFor(m, s); !errors.Is(err, ErrDisabled) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
