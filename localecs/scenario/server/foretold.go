package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// How long something of a stopped task may be left in Consul. It takes tens of
// milliseconds, but services come back when their token still works: the agent
// that leaves writes the listener's check once more, after the server has
// forgotten its node. The server looks for such nodes every 60 s (Consul's
// ReconcileInterval). That an agent has died gossip finds out in less; that one has
// left may be lost on the way where others have left a moment before, and the server
// has it as failed until it hears so in an exchange of whole states, which each agent
// begins every 30 s (serf: MergeRemoteState).
const (
	TokenLimit   = 15 * time.Second
	AgentLimit   = 45 * time.Second
	ServiceLimit = 75 * time.Second
)

// Limit is how long that may be left.
func Limit(rest []Leftover) time.Duration {
	token := func(l Leftover) bool { return l.Token != "" }
	failed := func(l Leftover) bool { return l.State == AgentFailed }
	switch {
	case len(rest) == 0 || slices.ContainsFunc(rest, token):
		return TokenLimit
	case slices.ContainsFunc(rest, failed):
		return AgentLimit
	}
	return ServiceLimit
}

// Still says what is left after a while, or why that is not known.
func Still(took time.Duration, rest []Leftover, err error) string {
	what := list(rest)
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

func list(all []Leftover) string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
