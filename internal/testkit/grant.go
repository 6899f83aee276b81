package testkit

import (
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
)

// Grant makes a token with a policy of these rules, and returns its secret.
func Grant(t testing.TB, admin *api.Client, rules string) string {
	t.Helper()
	policy, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: uuid.New().String(), Rules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLTokenPolicyLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}
