package setup

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// writer returns a client that may write every key, and nothing else.
func writer(t *testing.T) *api.KV {
	t.Helper()
	c, _ := client(t, testkit.Grant(t, management(t), `key_prefix "" { policy = "write" }`), nil)
	return c.KV()
}

// put writes a key as a client that may write every key.
func put(t *testing.T, kv *api.KV, key, value string) {
	t.Helper()
	if _, err := kv.Put(&api.KVPair{Key: key, Value: []byte(value)}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestKeysDecideNoTrust: a client that may write every key forges, changes and deletes what it
// finds. The operator's entry stays, and the narrowed path is narrow.
func TestKeysDecideNoTrust(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c, requests := client(t, testkit.ManagementToken, nil)
	mustEnsure(t, l.setup(t, c, Options{}))
	const operators = "arn:aws:iam::999999999999:role/operator-made/*"
	addPrincipal(t, l.serviceMethod(), operators)
	kv, prefix := writer(t), "consul-ecs/setup/"+l.name+"/"
	if _, err := kv.DeleteTree(prefix, nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{cluster(1), "zzz"} {
		for _, method := range []string{l.clientMethod(), l.serviceMethod()} {
			claims := `[{"arn":"` + operators + `","added":true},{"arn":"` + trusted(1, "consul-ecs/") +
				`","added":false}]`
			put(t, kv, prefix+"trust/"+key,
				`{"cluster":"`+key+`","controller":"`+key+`","trust":{"`+method+`":`+claims+`}}`)
		}
	}
	put(t, kv, prefix+"lock", "forged")
	requests.writes()
	mustEnsure(t, l.setup(t, c, Options{RolePath: "narrow"}))
	if diff := compare([]string{trusted(1, "narrow/"), operators}, principalsOf(t, l.serviceMethod())); diff != "" {
		t.Errorf("service tokens: %s", diff)
	}
	if diff := compare([]string{trusted(1, "narrow/")}, principalsOf(t, l.clientMethod())); diff != "" {
		t.Errorf("client tokens: %s", diff)
	}
}

// TestKeyWritersCannotWriteRecords: a record is a binding rule, which needs acl:write.
func TestKeyWritersCannotWriteRecords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	mustEnsure(t, l.setup(t, management(t), Options{}))
	c, _ := client(t, testkit.Grant(t, management(t), `key_prefix "" { policy = "write" } acl = "read"`), nil)
	rules, _, err := c.ACL().BindingRuleList(l.serviceMethod(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if _, _, err := c.ACL().BindingRuleUpdate(r, nil); consulutil.Status(err) != 403 {
			t.Errorf("updated %q: %v", r.Description, err)
		}
	}
}
