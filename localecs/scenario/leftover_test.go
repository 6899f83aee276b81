package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplitDeclared(t *testing.T) {
	t.Parallel()
	service := leftover{Token: "1", Method: "services"}
	instance := leftover{Service: "api-1234"}
	failed, alive := leftover{Agent: "n", State: "failed"}, leftover{Agent: "n", State: "alive"}
	const dead = "it was killed"
	for _, c := range []struct {
		name           string
		found          []leftover
		agentFails     string
		reported, rest []leftover
	}{
		{"nothing", nil, "", nil, nil},
		{"nothing declared", []leftover{service, instance, failed}, "", nil,
			[]leftover{service, instance, failed}},
		{"an agent that fails", []leftover{service, failed}, dead, []leftover{failed}, []leftover{service}},
		{"one that may yet", []leftover{alive}, dead, nil, []leftover{alive}},
	} {
		reported, rest := splitDeclared(c.found, c.agentFails)
		same := cmp.AllowUnexported(leftover{})
		if cmp.Diff(c.reported, reported, same) != "" || cmp.Diff(c.rest, rest, same) != "" {
			t.Errorf("%s: declared %v, rest %v; want %v and %v", c.name, reported, rest, c.reported, c.rest)
		}
	}
}

// A service may be left longer than a token, and an agent be alive longer than
// failed.
func TestLimitsOfLeftovers(t *testing.T) {
	t.Parallel()
	token, service := leftover{Token: "1", Method: "m"}, leftover{Service: "api-1234"}
	for _, c := range []struct {
		rest []leftover
		err  error
		want time.Duration
		text string
	}{
		{[]leftover{token}, nil, 15 * time.Second, "still in Consul after 15s: token 1 of m"},
		{[]leftover{token, service}, nil, 15 * time.Second,
			"still in Consul after 15s: token 1 of m, service api-1234"},
		{[]leftover{service}, nil, 75 * time.Second, "still in Consul after 1m15s: service api-1234"},
		{[]leftover{service, {Agent: "n", State: "alive"}}, nil, 75 * time.Second,
			"still in Consul after 1m15s: service api-1234, agent n, which is alive"},
		{[]leftover{{Agent: "n", State: "failed"}}, nil, 45 * time.Second,
			"still in Consul after 45s: agent n, which is failed"},
		{[]leftover{service, {Agent: "n", State: "failed"}}, nil, 45 * time.Second,
			"still in Consul after 45s: service api-1234, agent n, which is failed"},
		{[]leftover{{Agent: "n", State: "failed"}, token}, nil, 15 * time.Second,
			"still in Consul after 15s: agent n, which is failed, token 1 of m"},
		{nil, errors.New("list tokens: refused"), 15 * time.Second, "still in Consul after 15s: list tokens: refused"},
	} {
		if got := limit(c.rest); got != c.want || still(got, c.rest, c.err) != c.text {
			t.Errorf("%v: %s, %q; want %s, %q", c.rest, got, still(got, c.rest, c.err), c.want, c.text)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	token, service := leftover{Token: "1", Method: "m"}, leftover{Service: "api-1234"}
	for want, found := range map[string][]leftover{
		"":                    nil,
		"1 token":             {token},
		"2 tokens, 1 service": {token, service, token},
		"1 service, 1 agent":  {{Agent: "n", State: agentAlive}, service},
		"2 services":          {service, {Agent: "n", State: agentFailed}, service},
	} {
		if got := sum(found); got != want {
			t.Errorf("%v: %q, want %q", found, got, want)
		}
	}
}
