package scenario

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A new method learns where the simulated AWS is, and keeps all
// else; one that has an endpoint, or is of another type, stays as it is.
func TestNewAuthMethodsAreRedirected(t *testing.T) {
	t.Parallel()
	client := newConsul(t)
	ctx, cancel := context.WithCancel(t.Context())
	var redirecting sync.WaitGroup
	redirecting.Go(func() { Redirect(ctx, client, "http://127.0.0.1:1") })
	defer redirecting.Wait()
	defer cancel()
	look := ConsulQuery{Client: client}
	missing := func(want string) {
		t.Helper()
		got := ""
		testkit.Eventually(t, "missing "+want, func() bool {
			var err error
			if got, err = look.Missing(t.Context(), []string{"services"}); err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	missing("services does not exist")
	const principal = "arn:aws:iam::123456789012:role/consul-ecs/*"
	create := func(name string, config map[string]any) {
		t.Helper()
		config["BoundIAMPrincipalARNs"] = []string{principal}
		if _, _, err := client.ACL().AuthMethodCreate(&api.ACLAuthMethod{Name: name, Type: "aws-iam",
			Description: "mine", Config: config}, nil); err != nil {
			t.Fatal(err)
		}
	}
	create("own", map[string]any{"STSEndpoint": "http://127.0.0.1:2", "EnableIAMEntityDetails": true})
	create("services", map[string]any{"EnableIAMEntityDetails": true})
	missing("services has no binding rule")
	if _, _, err := client.ACL().BindingRuleCreate(&api.ACLBindingRule{AuthMethod: "services", BindType: "service",
		BindName: "web"}, nil); err != nil {
		t.Fatal(err)
	}
	missing("")
	for name, want := range map[string]map[string]any{
		"own": {"STSEndpoint": "http://127.0.0.1:2", "EnableIAMEntityDetails": true,
			"BoundIAMPrincipalARNs": []any{principal}},
		"services": {"STSEndpoint": "http://127.0.0.1:1", "IAMEndpoint": "http://127.0.0.1:1",
			"BoundIAMPrincipalARNs": []any{principal}, "EnableIAMEntityDetails": true},
	} {
		got, _, err := client.ACL().AuthMethodRead(name, nil)
		if err != nil || got.Description != "mine" {
			t.Fatalf("%+v, %v", got, err)
		}
		if d := cmp.Diff(want, got.Config); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
