package aclrules

import (
	"fmt"
	"strings"
)

// RuleAnswer is a rule of a subject as it counts, for machines.
type RuleAnswer struct {
	Resource   string   `json:"resource"`
	Prefix     bool     `json:"prefix"`
	Segment    string   `json:"segment"`
	Level      string   `json:"level"`
	Intentions string   `json:"intentions,omitempty"`
	Sources    []string `json:"sources"`
}

// Merged returns all rules that count, each once.
func (r *Report) Merged() []RuleAnswer {
	all := []RuleAnswer{}
	for _, m := range r.table.merged() {
		one := RuleAnswer{Resource: string(m.Rule.Resource), Prefix: m.Rule.Prefix, Segment: m.Rule.Segment,
			Level: m.Rule.Level, Intentions: m.Rule.Intentions}
		for _, s := range m.Contributions {
			one.Sources = append(one.Sources, contribution(s, m.Rule.Level))
		}
		all = append(all, one)
	}
	return all
}

// contribution returns a source, with its level if another one counts.
func contribution(s Sourced, level string) string {
	if s.Rule.Level == level {
		return locationOf(s)
	}
	return fmt.Sprintf("%s (sets %s)", locationOf(s), s.Rule.Level)
}

// HCL returns the subject's rules as one policy, with each rule's sources.
func (r *Report) HCL() string {
	var b strings.Builder
	for _, err := range r.found.Errors {
		fmt.Fprintf(&b, "# MISSING %s\n", err)
	}
	for _, err := range r.found.Notes {
		fmt.Fprintf(&b, "# %s\n", err)
	}
	for i, m := range r.table.merged() {
		if i > 0 || b.Len() > 0 {
			b.WriteString("\n")
		}
		for _, s := range m.Contributions {
			fmt.Fprintf(&b, "# %s\n", contribution(s, m.Rule.Level))
		}
		b.WriteString(m.Rule.HCL() + "\n")
	}
	return b.String()
}
