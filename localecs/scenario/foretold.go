package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Limit is how long that may be left of a stopped task.
func Limit(rest []Leftover) time.Duration {
	token := func(l Leftover) bool { return l.Token != "" }
	failed := func(l Leftover) bool { return l.State == AgentFailed }
	switch {
	case len(rest) == 0 || slices.ContainsFunc(rest, token):
		return chaos.TokenBound
	case slices.ContainsFunc(rest, failed):
		return chaos.AgentBound
	}
	return chaos.ServiceBound
}

// Still says what is left after a while, or why that is not known.
func Still(took time.Duration, rest []Leftover, err error) string {
	what := joinLeftovers(rest)
	if err != nil {
		what = err.Error()
	}
	return fmt.Sprintf("still in Consul after %s: %s", took.Round(time.Second), what)
}

// Reason is a step's for something that stays, empty when it has none.
func Reason(l Leftover, leaves file.Leaves) string {
	switch {
	case l.Agent == "":
		return leaves.Tokens[l.Method]
	case l.State == AgentFailed:
		return leaves.Agent
	}
	return ""
}

// Foretold parts what may stay from everything else.
func Foretold(found []Leftover, leaves file.Leaves) (told, rest []Leftover) {
	for _, l := range found {
		if Reason(l, leaves) != "" {
			told = append(told, l)
		} else {
			rest = append(rest, l)
		}
	}
	return told, rest
}

func joinLeftovers(all []Leftover) string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
