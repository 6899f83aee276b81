package setup

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// datacenter starts a server; with a primary, as a second datacenter.
func datacenter(t *testing.T, primary *testkit.Consul) *testkit.Consul {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true, Primary: primary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c.Require(t)
}

// TestSecondaryDatacenter sets a real secondary datacenter up: policies and
// roles are the primary's, methods and rules its own, and the anonymous token is
// not its business. What replication delays is tried again, as the caller does.
func TestSecondaryDatacenter(t *testing.T) {
	t.Parallel()
	first := datacenter(t, nil)
	second := datacenter(t, first)
	state, err := Agent(Options{Cluster: cluster(1), RolePath: DefaultRolePath, AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	controller := func(c *testkit.Consul) *Setup {
		client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: testkit.ManagementToken})
		if err != nil {
			t.Fatal(err)
		}
		return &Setup{Client: client, Wanted: state, Log: hclog.NewNullLogger()}
	}
	there, here := controller(second), controller(first)
	testkit.Eventually(t, "the management token is replicated", func() bool {
		_, err := there.Client.Agent().Self()
		return err == nil
	})
	var made []string
	policy := retry.Policy{Base: 100 * time.Millisecond, Limit: time.Minute}
	err = retry.Do(t.Context(), policy, hclog.NewNullLogger(), "setup",
		consulutil.Classify, func(ctx context.Context) error {
			changes, err := there.Ensure(ctx)
			for _, c := range changes {
				made = append(made, describe(c))
			}
			return err
		})
	if err != nil {
		t.Fatalf("the secondary: %v\n%s", err, second.Log())
	}
	want := []string{
		"policy consul-ecs-client-policy created", "role consul-ecs-client-role created",
		"auth method iam-ecs-client-token created", "auth method iam-ecs-service-token created",
		"binding rule iam-ecs-client-token: Bind a policy for Consul clients on ECS created",
		"binding rule iam-ecs-service-token: Bind a service identity from IAM role tag for ECS created",
		"record " + cluster(1) + " in iam-ecs-client-token created",
		"record " + cluster(1) + " in iam-ecs-service-token created",
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("the secondary (-want +got):\n%s", diff)
	}
	replicated(t, there.Client)
	if again := mustEnsure(t, there); len(again) > 0 {
		t.Errorf("a second start of the secondary changes:\n%s", text(again))
	}
	wantHere := strings.Join(
		append(want[2:], "policy anonymous-token-policy created", "token "+anonymousToken+" corrected: Policies"), "\n")
	if diff := cmp.Diff(wantHere, text(mustEnsure(t, here))); diff != "" {
		t.Errorf("the primary (-want +got):\n%s", diff)
	}
}

// replicated waits until the secondary has the role of the primary.
func replicated(t *testing.T, c *api.Client) {
	t.Helper()
	testkit.Eventually(t, "the role is replicated", func() bool {
		role, _, err := c.ACL().RoleReadByName(clientRole, nil)
		return err == nil && role != nil
	})
}
