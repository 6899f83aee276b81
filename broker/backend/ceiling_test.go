package backend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// policies are those of a Consul.
type policies map[string]aclrules.Policy

func (p policies) Policy(_ context.Context, l aclrules.Link) (aclrules.Policy, error) {
	if found, ok := p[l.Name]; ok {
		return found, nil
	}
	if l.Name == "unreadable" {
		return aclrules.Policy{}, errLine
	}
	return aclrules.Policy{}, aclrules.ErrDangling
}

// under compares the policies of a token with a ceiling: "" if they may be given,
// "policy" if not, and the class of the failure if that cannot be decided.
func under(t *testing.T, get backend.Policies, ceiling, names string) (string, error) {
	t.Helper()
	err := backend.CheckCeiling(t.Context(), get, ceiling, strings.Split(names, ","))
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, backend.ErrPolicy):
		return "policy", err
	case consulutil.Classify(err).Retryable():
		return "retry", err
	}
	return "permanent", err
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	get := policies{
		"app":      {Rules: `key_prefix "app/" { policy = "write" } acl = "read" operator = "read"`},
		"acl":      {Rules: `acl = "write"`},
		"shouting": {Rules: `acl = "WRITE"`},
		"operator": {Rules: `operator = "write"`},
		"keyring":  {Rules: `keyring = "write"`},
		"broken":   {Rules: `key "a" {`},
		"scoped":   {Rules: `namespace_prefix "" { acl = "write" }`},
		"parted":   {Rules: `Partition "x" { namespace "y" { key_prefix "" { policy = "read" } } }`},
		"renamed":  {ID: aclrules.ManagementID},
	}
	for names, want := range map[string]string{
		"app": "", "acl": "policy", "shouting": "policy", "operator": "policy", "keyring": "policy", "broken": "policy",
		"scoped": "policy", "parted": "policy", "renamed": "policy", "app,none": "policy", "unreadable": "retry",
		"app,acl": "policy",
	} {
		if got, err := under(t, get, "", names); got != want {
			t.Errorf("%s: got %q (%v), want %q", names, got, err, want)
		}
	}
}

// Together the policies of a token grant no more than the ceiling, rule by rule.
func TestCeilingOfAPolicy(t *testing.T) {
	t.Parallel()
	get := policies{
		"most": {ID: "1",
			Rules: `key_prefix "app/" { policy = "write" } key "app/locked" { policy = "read" } service_prefix "" { policy = "read" }`},
		"admin":   {ID: "2", Rules: `acl = "write"`},
		"broken":  {ID: "3", Rules: `key "a" {`},
		"read":    {ID: "4", Rules: `key_prefix "app/" { policy = "read" } service "web" { policy = "read" }`},
		"write":   {ID: "5", Rules: `key_prefix "app/web/" { policy = "write" }`},
		"locked":  {ID: "6", Rules: `key "app/locked" { policy = "write" }`},
		"beyond":  {ID: "7", Rules: `key_prefix "app" { policy = "read" }`},
		"service": {ID: "8", Rules: `service "web" { policy = "write" }`},
		"denies":  {ID: "9", Rules: `service "web" { policy = "deny" }`},
		"far":     {ID: "10", Rules: `service "web" { policy = "write" }`, Datacenters: []string{"dc2"}},
		"denied":  {ID: "13", Rules: `service "web" { policy = "deny" }`, Datacenters: []string{"dc2"}},
		"limited": {ID: "14", Rules: `key_prefix "" { policy = "write" }`, Datacenters: []string{"dc2"}},
		"keyring": {ID: "11", Rules: `keyring = "write"`},
		"mesh":    {ID: "12", Rules: `mesh = "read"`},
	}
	for _, tt := range []struct{ ceiling, names, want, reason string }{
		{"", "service", "", ""},
		{"most", "read", "", ""},
		{"most", "read,write", "", ""},
		{"most", "read,locked", "policy", `key write of key "app/locked"`},
		{"most", "beyond", "policy", `key read of key_prefix "app"`},
		{"most", "read,service", "policy", `service write of service "web"`},
		{"most", "service,denies", "", ""},                                     // deny outranks write
		{"most", "service,denied", "policy", `service write of service "web"`}, // dc2 alone denies
		{"limited", "write", "", ""},                                           // a ceiling holds everywhere
		{"most", "far", "policy", `service write of service "web"`},
		{"most", "mesh", "policy", "mesh read"},
		{"admin", "service,mesh", "", ""},
		{"admin", "keyring", "policy", "the servers' gossip"},
		{"most", "admin", "policy", "can make a management token"},
		{"broken", "read", "permanent", "correct the rules of the policy"},
	} {
		got, err := under(t, get, tt.ceiling, tt.names)
		if got != tt.want || !strings.Contains(fmt.Sprint(err), tt.reason) {
			t.Errorf("%s below %q: got %q (%v), want %q with %q", tt.names, tt.ceiling, got, err, tt.want, tt.reason)
		}
	}
}

// With the policies of a real Consul, read with acl = "read".
func TestCeilingIsAPolicyOfConsul(t *testing.T) {
	t.Parallel()
	admin := consulClient(t, testkit.ManagementToken, &line{})
	names := map[string]string{}
	for name, rules := range map[string]string{
		"most":  `key_prefix "app/" { policy = "write" }`,
		"app":   `key_prefix "app/web/" { policy = "write" }`,
		"other": `key "db" { policy = "read" }`,
	} {
		names[name] = name + "-" + uuid.NewString()
		if _, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: names[name], Rules: rules}, nil); err != nil {
			t.Fatal(err)
		}
	}
	const reads, none = `acl = "read"`, `key_prefix "" { policy = "read" }`
	for _, tt := range []struct{ rights, ceiling, wanted, want, reason string }{
		{reads, names["most"], "app", "", ""},
		{reads, names["most"], "other", "policy", `key read of key "db"`},
		{reads, "none", "app", "permanent", "create it, or start the broker with another -ceiling-policy"},
		{none, names["most"], "app", "permanent", `give the broker's token a policy with acl = "read"`},
	} {
		get := consulutil.NewACLReader(consulClient(t, testkit.Grant(t, admin, tt.rights), &line{}), "")
		got, err := under(t, get, tt.ceiling, names[tt.wanted])
		if got != tt.want || !strings.Contains(fmt.Sprint(err), tt.reason) {
			t.Errorf("%+v: got %q (%v)", tt, got, err)
		}
	}
	unknown := consulutil.NewACLReader(consulClient(t, uuid.NewString(), &line{}), "")
	if got, err := under(t, unknown, names["most"], names["app"]); got != "permanent" ||
		!errors.Is(err, consulutil.ErrUnknownReader) {
		t.Errorf("with a token that Consul does not know: got %q (%v)", got, err)
	}
}
