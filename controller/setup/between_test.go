package setup

import (
	"errors"
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestChangeOfAnObjectInBetweenSurvives: an operator changes a policy, a
// role or a rule after setup has read it, and before it writes it.
func TestChangeOfAnObjectInBetweenSurvives(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, l fixture, spoil, edit bool) (mended, edited bool){
		"policy": changePolicy, "role": changeRole, "rule": changeRule,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			mustEnsure(t, l.setup(t, management(t), Options{}))
			change(t, l, true, false)
			reads := 0
			c, _ := client(t, testkit.ManagementToken, func(r *http.Request) (*http.Response, error) {
				// These rules are the last to be read, a second time below the lock.
				if r.Method == http.MethodGet && r.URL.Query().Get("authmethod") == l.serviceMethod() {
					if reads++; reads == 2 {
						change(t, l, false, true)
					}
				}
				return nil, nil
			})
			s := l.setup(t, c, Options{})
			if _, err := s.Ensure(t.Context()); !errors.Is(err, errChanged) ||
				consulutil.Classify(err) != retry.NotYet {
				t.Errorf("got %v", err)
			}
			mustEnsure(t, s)
			if mended, edited := change(t, l, false, false); !mended || !edited {
				t.Errorf("mended: %v, the operator's change is there: %v", mended, edited)
			}
		})
	}
}

// changePolicy changes our part of it or edits what is the operator's, and returns
// what was the case before. So do the next two.
func changePolicy(t *testing.T, l fixture, spoil, edit bool) (mended, edited bool) {
	t.Helper()
	p, _, err := management(t).ACL().PolicyReadByName(l.policy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const weak = `acl = "write"`
	mended, edited = p.Rules != weak, p.Description == "operator's"
	if spoil {
		p.Rules = weak
	}
	if edit {
		p.Description = "operator's"
	}
	if spoil || edit {
		_, _, err = management(t).ACL().PolicyUpdate(p, nil)
	}
	if err != nil {
		t.Error(err)
	}
	return mended, edited
}

func changeRole(t *testing.T, l fixture, spoil, edit bool) (mended, edited bool) {
	t.Helper()
	r, _, err := management(t).ACL().RoleReadByName(l.role(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mended, edited = len(r.Policies) == 1, len(r.ServiceIdentities) == 1
	if spoil {
		r.Policies = nil
		r.NodeIdentities = []*api.ACLNodeIdentity{{NodeName: "n", Datacenter: "dc1"}} // a role needs something
	}
	if edit {
		r.ServiceIdentities = []*api.ACLServiceIdentity{{ServiceName: "web"}}
	}
	if spoil || edit {
		_, _, err = management(t).ACL().RoleUpdate(r, nil)
	}
	if err != nil {
		t.Error(err)
	}
	return mended, edited
}

func changeRule(t *testing.T, l fixture, spoil, edit bool) (mended, edited bool) {
	t.Helper()
	rules := rulesOf(t, management(t).ACL(), l.clientMethod())
	if len(rules) != 1 {
		t.Fatal(rules)
	}
	r := rules[0]
	const selector = `entity_name == "web"`
	mended, edited = r.BindName == l.role(), r.Selector == selector
	if spoil {
		r.BindName = "other"
	}
	if edit {
		r.Selector = selector
	}
	if spoil || edit {
		if _, _, err := management(t).ACL().BindingRuleUpdate(r, nil); err != nil {
			t.Error(err)
		}
	}
	return mended, edited
}
