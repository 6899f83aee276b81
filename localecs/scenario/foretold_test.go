package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// TestSplitDeclared: of tokens those of its methods, of agents those that failed.
func TestSplitDeclared(t *testing.T) {
	t.Parallel()
	service, client := Leftover{Token: "1", Method: "services"}, Leftover{Token: "2", Method: "clients"}
	instance := Leftover{Service: "api-1234"}
	failed, alive := Leftover{Agent: "n", State: "failed"}, Leftover{Agent: "n", State: "alive"}
	leaves := file.Leaves{Tokens: map[string]string{"services": "no process logs out"}}
	dead := file.Leaves{Agent: "it was killed"}
	for _, c := range []struct {
		name           string
		found          []Leftover
		leaves         file.Leaves
		reported, rest []Leftover
	}{
		{"nothing", nil, file.Leaves{}, nil, nil},
		{"nothing foretold", []Leftover{service, instance, failed}, file.Leaves{}, nil, []Leftover{service, instance, failed}},
		{"an agent that fails", []Leftover{service, failed}, dead, []Leftover{failed}, []Leftover{service}},
		{"one that may yet", []Leftover{alive}, dead, nil, []Leftover{alive}},
		{"of one method", []Leftover{service, client, instance}, leaves, []Leftover{service}, []Leftover{client, instance}},
	} {
		reported, rest := splitDeclared(c.found, c.leaves)
		same := cmp.AllowUnexported(Leftover{})
		if cmp.Diff(c.reported, reported, same) != "" || cmp.Diff(c.rest, rest, same) != "" {
			t.Errorf("%s: foretold %v, rest %v; want %v and %v", c.name, reported, rest, c.reported, c.rest)
		}
	}
}

// A service may be left longer than a token, and an agent be alive longer than
// failed.
func TestLimitsOfLeftovers(t *testing.T) {
	t.Parallel()
	token, service := Leftover{Token: "1", Method: "m"}, Leftover{Service: "api-1234"}
	for _, c := range []struct {
		rest []Leftover
		err  error
		want time.Duration
		text string
	}{
		{[]Leftover{token}, nil, 15 * time.Second, "still in Consul after 15s: token 1 of m"},
		{[]Leftover{token, service}, nil, 15 * time.Second, "still in Consul after 15s: token 1 of m, service api-1234"},
		{[]Leftover{service}, nil, 75 * time.Second, "still in Consul after 1m15s: service api-1234"},
		{[]Leftover{service, {Agent: "n", State: "alive"}}, nil, 75 * time.Second, "still in Consul after 1m15s: service api-1234, agent n, which is alive"},
		{[]Leftover{{Agent: "n", State: "failed"}}, nil, 45 * time.Second, "still in Consul after 45s: agent n, which is failed"},
		{[]Leftover{service, {Agent: "n", State: "failed"}}, nil, 45 * time.Second, "still in Consul after 45s: service api-1234, agent n, which is failed"},
		{[]Leftover{{Agent: "n", State: "failed"}, token}, nil, 15 * time.Second, "still in Consul after 15s: agent n, which is failed, token 1 of m"},
		{nil, errors.New("list tokens: refused"), 15 * time.Second, "still in Consul after 15s: list tokens: refused"},
	} {
		if got := limit(c.rest); got != c.want || still(got, c.rest, c.err) != c.text {
			t.Errorf("%v: %s, %q; want %s, %q", c.rest, got, still(got, c.rest, c.err), c.want, c.text)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	token, service := Leftover{Token: "1", Method: "m"}, Leftover{Service: "api-1234"}
	for want, found := range map[string][]Leftover{
		"":                    nil,
		"1 token":             {token},
		"2 tokens, 1 service": {token, service, token},
		"1 service, 1 agent":  {{Agent: "n", State: AgentAlive}, service},
		"2 services":          {service, {Agent: "n", State: AgentFailed}, service},
	} {
		if got := sum(found); got != want {
			t.Errorf("%v: %q, want %q", found, got, want)
		}
	}
}
