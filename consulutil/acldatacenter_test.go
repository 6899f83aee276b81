package consulutil

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// pair starts the servers of two datacenters, of the newest version or the usual one; dc2 takes
// its ACLs from dc1.
func pair(t *testing.T, newest bool) (address string, one, two *api.Client) {
	t.Helper()
	start := func(o testkit.ConsulOptions) (string, *api.Client) {
		o.Newest = newest
		c, err := testkit.StartConsul(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Stop)
		return c.Require(t).HTTPAddr, clientOf(t, c.HTTPAddr, testkit.ManagementToken)
	}
	address, one = start(testkit.ConsulOptions{ACL: true})
	self, err := one.Agent().Self()
	if err != nil {
		t.Fatal(err)
	}
	_, two = start(testkit.ConsulOptions{HCL: fmt.Sprintf(`
		datacenter = "dc2"
		primary_datacenter = "dc1"
		node_name = "second"
		retry_join_wan = ["127.0.0.1:%v"]
		retry_interval_wan = "1s"
		acl {
		  enabled = true
		  default_policy = "deny"
		  enable_token_replication = true
		  tokens { replication = %q agent = %q }
		}`, self["DebugConfig"]["SerfPortWAN"], testkit.ManagementToken, testkit.ManagementToken)})
	testkit.Eventually(t, "dc2 replicates, and dc1 reaches it", func() bool {
		status, _, err := two.ACL().Replication(nil)
		if err != nil || !status.Enabled || !status.Running || status.ReplicatedTokenIndex == 0 {
			return false
		}
		_, _, err = one.ACL().TokenList((&api.QueryOptions{Datacenter: "dc2"}))
		return err == nil
	})
	return address, one, two
}

func clientOf(t testing.TB, address, token string) *api.Client {
	t.Helper()
	c, err := NewClient(Options{Address: address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// -datacenter: local tokens and policies of another datacenter, judged there.
func TestOtherDatacenter(t *testing.T) {
	t.Parallel()
	address, one, two := pair(t, false)
	o := &objects{t, one.ACL(), "here"}
	here, _, err := o.acl.PolicyCreate(
		&api.ACLPolicy{Name: "dc1-only", Rules: `operator = "read"`, Datacenters: []string{"dc1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	there, _, err := o.acl.PolicyCreate(
		&api.ACLPolicy{Name: "dc2-only", Rules: `keyring = "read"`, Datacenters: []string{"dc2"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	links := []*api.ACLLink{{ID: here.ID}, {ID: there.ID}}
	global := o.token(&api.ACLToken{Policies: links})
	var local *api.ACLToken
	testkit.Eventually(t, "the policies are in dc2", func() bool {
		local, _, err = two.ACL().TokenCreate(&api.ACLToken{Policies: links, Local: true}, nil)
		return err == nil
	})

	ask := []aclrules.Query{{Resource: aclrules.Operator, Access: aclrules.ReadAccess},
		{Resource: aclrules.Keyring, Access: aclrules.ReadAccess}}
	for _, c := range []struct{ datacenter, accessor, secret, want string }{
		{"", global.AccessorID, global.SecretID, "dc1 [allow deny] deny"},
		{"dc1", global.AccessorID, global.SecretID, "dc1 [allow deny] deny"},
		{"dc2", global.AccessorID, global.SecretID, "dc2 [deny allow] deny"},
		{"dc2", local.AccessorID, local.SecretID, "dc2 [deny allow] deny"},
	} {
		r := NewACLReader(one, c.datacenter)
		datacenter, err := r.Datacenter(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		found := aclrules.Resolver{Objects: r, Datacenter: datacenter, Now: time.Now()}.Resolve(context.Background(),
			aclrules.Subject{Token: c.accessor})
		table := aclrules.Merge(found.Rules,
			aclrules.Options{Default: aclrules.Denied, Incomplete: len(found.Errors) > 0})
		var ours []aclrules.Verdict
		for _, q := range ask {
			ours = append(ours, table.Decide(q).Verdict)
		}
		if got := fmt.Sprint(datacenter, " ", ours, " ", r.DefaultPolicy(context.Background())); got != c.want ||
			found.Refused != nil {
			t.Errorf("%q: got %s, want %s (%v)", c.datacenter, got, c.want, found)
		}
		authorizer, err := NewAuthorizer(Options{Address: address}, c.datacenter)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the server knows the token as well", func() bool {
			allowed, err := authorizer.Authorize(context.Background(), c.secret, ask)
			return err == nil && allowed[0] == (ours[0] == aclrules.Allowed) &&
				allowed[1] == (ours[1] == aclrules.Allowed)
		})
	}

	// dc1 does not know dc2's own tokens, and not what dc2 allows by default to
	// a token that may not read it.
	if found := resolve(NewACLReader(one, ""), aclrules.Subject{Token: local.AccessorID}); found.Refused == nil {
		t.Errorf("a local token of dc2 in dc1: %+v", found)
	}
	r := NewACLReader(clientOf(t, address, global.SecretID), "dc2")
	if _, err := r.Datacenter(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v := r.DefaultPolicy(context.Background()); v != aclrules.Unknown {
		t.Errorf("dc2's default policy is %s", v)
	}
	if _, err := NewACLReader(one, "dc3").Datacenter(context.Background()); err == nil ||
		!strings.Contains(err.Error(), `datacenter "dc3": the server knows dc1, dc2 only`) {
		t.Errorf("dc3: %v", err)
	}
}
