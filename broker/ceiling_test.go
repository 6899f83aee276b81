package broker

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/grant"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/consulutil/aclread"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Together the policies of a token grant no more than the ceiling, rule by rule.
func TestCeilingOfAPolicy(t *testing.T) {
	t.Parallel()
	get := policies{
		"most":    {ID: "1", Rules: `key_prefix "app/" { policy = "write" } key "app/locked" { policy = "read" } service_prefix "" { policy = "read" }`},
		"admin":   {ID: "2", Rules: `acl = "write"`},
		"broken":  {ID: "3", Rules: `key "a" {`},
		"read":    {ID: "4", Rules: `key_prefix "app/" { policy = "read" } service "web" { policy = "read" }`},
		"write":   {ID: "5", Rules: `key_prefix "app/web/" { policy = "write" }`},
		"locked":  {ID: "6", Rules: `key "app/locked" { policy = "write" }`},
		"beyond":  {ID: "7", Rules: `key_prefix "app" { policy = "read" }`},
		"service": {ID: "8", Rules: `service "web" { policy = "write" }`},
		"denies":  {ID: "9", Rules: `service "web" { policy = "deny" }`},
		"far":     {ID: "10", Rules: `service "web" { policy = "write" }`, Datacenters: []string{"dc2"}},
		"keyring": {ID: "11", Rules: `keyring = "write"`},
		"mesh":    {ID: "12", Rules: `mesh = "read"`},
	}
	for _, tt := range []struct{ ceiling, names, want, reason string }{
		{"", "service", "", ""},
		{"most", "read", "", ""},
		{"most", "read,write", "", ""},
		{"most", "read,locked", "422 ceiling", `key write of key "app/locked"`},
		{"most", "beyond", "422 ceiling", `key read of key_prefix "app"`},
		{"most", "read,service", "422 ceiling", `service write of service "web"`},
		{"most", "service,denies", "", ""}, // deny outranks write
		{"most", "far", "422 ceiling", `service write of service "web"`},
		{"most", "mesh", "422 ceiling", "mesh read"},
		{"admin", "service,mesh", "", ""},
		{"admin", "keyring", "422 ceiling", "the servers' gossip"},
		{"most", "admin", "422 ceiling", "can make a management token"},
		{"broken", "read", "use the ceiling", "correct the rules of the policy"},
	} {
		err := UnderCeiling(t.Context(), get, tt.ceiling, strings.Split(tt.names, ","))
		if got := coded(err); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s below %q: got %q (%v), want %q with %q", tt.names, tt.ceiling, got, err, tt.want, tt.reason)
		}
	}
}

// A ceiling that cannot be read is a failure of the backend, for the time that it lasts.
func TestCeilingThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	get := policies{"app": {}}
	ceiling := ""
	in(t, func(t *testing.T, w *world) {
		c := w.task(1)
		for name, want := range map[string]int{"none": http.StatusUnprocessableEntity, "denied": http.StatusUnprocessableEntity, "unreadable": http.StatusServiceUnavailable} {
			ceiling = name
			r := c.ask()
			if wantRefused(t, r, want, grant.BackendFailed); !strings.Contains(r.Body.String(), `policy \"`+name+`\"`) {
				t.Errorf("%s", r.Body)
			}
		}
		if got := w.alarms(); len(got) != 2 {
			t.Errorf("alarms %+v", got)
		}
	}, func(o *Options) {
		o.Ceiling = func(ctx context.Context, names []string) error { return UnderCeiling(ctx, get, ceiling, names) }
	})
}

// With the policies of a real Consul, read with acl = "read".
func TestCeilingIsAPolicyOfConsul(t *testing.T) {
	t.Parallel()
	admin, err := consulutil.NewClient(consulutil.Options{Address: consul.Require(t).HTTPAddr, Token: consul.Token})
	if err != nil {
		t.Fatal(err)
	}
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
	under := func(rights, ceiling, wanted string) error {
		client, err := consulutil.NewClient(consulutil.Options{Address: consul.HTTPAddr, Token: testkit.Grant(t, admin, rights)})
		if err != nil {
			t.Fatal(err)
		}
		return UnderCeiling(t.Context(), aclread.New(client, ""), ceiling, []string{names[wanted]})
	}
	const reads = `acl = "read"`
	if err := under(reads, names["most"], "app"); err != nil {
		t.Errorf("below the ceiling: %v", err)
	}
	if err := under(reads, names["most"], "other"); coded(err) != "422 ceiling" || !strings.Contains(err.Error(), `key read of key "db"`) {
		t.Errorf("above the ceiling: %v", err)
	}
	for name, err := range map[string]error{
		`give the broker's token a policy with acl = "read"`:          under(`key_prefix "" { policy = "read" }`, names["most"], "app"),
		"create it, or start the broker with another -ceiling-policy": under(reads, "none", "app"),
	} {
		if failed, ok := errors.AsType[*backend.Error](err); !ok || failed.Remedy != name || failed.Class != retry.Permanent {
			t.Errorf("%v, want the remedy %q", err, name)
		}
	}
}
