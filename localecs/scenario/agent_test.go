package scenario

import (
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestAgentIsTheOneAtTheAddress(t *testing.T) {
	t.Parallel()
	member := func(name, address string, status int) *api.AgentMember {
		return &api.AgentMember{Name: name, Addr: address, Status: status}
	}
	for _, c := range []struct {
		members     []*api.AgentMember
		name, state string
	}{
		{nil, "at 10.0.0.4", "unknown"},
		{[]*api.AgentMember{member("a", "10.0.0.5", 3)}, "at 10.0.0.4", "unknown"},
		{[]*api.AgentMember{member("a", "10.0.0.5", 4), member("b", "10.0.0.4", 3)}, "b", "left"},
		{[]*api.AgentMember{member("a", "10.0.0.4", 1)}, "a", "alive"},
		{[]*api.AgentMember{member("a", "10.0.0.4", 2)}, "a", "leaving"},
		{[]*api.AgentMember{member("a", "10.0.0.4", 0)}, "a", "unknown"},
		// An address comes back, with another agent.
		{[]*api.AgentMember{member("a", "10.0.0.4", 3), member("b", "10.0.0.4", 4)}, "b", "failed"},
		{[]*api.AgentMember{member("a", "10.0.0.4", 4), member("b", "10.0.0.4", 3)}, "a", "failed"},
	} {
		if got := agentAt("10.0.0.4", c.members); got.Agent != c.name || got.State != c.state {
			t.Errorf("%d members: %s is %s, want %s, %s", len(c.members), got.Agent, got.State, c.name, c.state)
		}
	}
}

// TestSerfStateOfAnAgent: the server is an agent itself.
func TestSerfStateOfAnAgent(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	client, err := consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	got, err := (ConsulQuery{Client: client}).agent(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	testkit.Equal(t, "State", got.State, agentAlive)
	if got.Agent == "" {
		t.Errorf("%v, %v", got, err)
	}
	testkit.Equal(t, "String()", got.String(), "agent "+got.Agent+", which is alive")
}
