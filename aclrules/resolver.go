package aclrules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// visitor is called with each rule and its source, and with each error on the way.
type visitor func(source fmt.Stringer, rule *Rule, err error)

// Subject is whose rules are asked for: all that is set counts together.
type Subject struct {
	// Token is read by its accessor, or is the reading token itself when Self.
	Token string
	Self  bool
	// Policies are given as text, PolicyLinks and Roles are read.
	Policies    []Policy
	PolicyLinks []Link
	Roles       []Link
	// Login is what an auth method would grant.
	Login *Login
}

// Resolver finds what counts for a subject. Every policy is read once.
type Resolver struct {
	// Objects may be nil for subjects that consist of texts.
	Objects Objects
	// Datacenter is the answering one: what is for others does not count.
	Datacenter string
	// Now decides what has expired.
	Now time.Time
}

// Resolution is all that could be found out about a subject.
type Resolution struct {
	Rules []Sourced
	// Errors are about what is missing; Notes about what does not count, on the
	// server either: dangling links, and policies of other datacenters.
	Errors, Notes []error
	// Refused is why the subject has no rights at all, and Disabled why every
	// subject has all of them; nil otherwise.
	Refused, Disabled error
}

// Resolve visits a subject and keeps everything. Rules are in the order in which
// the server pools them, by their policies' IDs: where two levels are not in
// lower case, the first counts.
func (r Resolver) Resolve(ctx context.Context, s Subject) Resolution {
	var found Resolution
	type pooled struct {
		Sourced
		policyID string
	}
	var rules []pooled
	var w *walk
	w = r.walk(func(source fmt.Stringer, rule *Rule, err error) {
		switch {
		case err == nil:
			rules = append(rules, pooled{Sourced{Rule: rule, Source: source}, w.policyID})
		case complete(err):
			found.Notes = append(found.Notes, err)
		case errors.Is(err, ErrRefused):
			found.Refused = errors.Join(found.Refused, err)
		case errors.Is(err, ErrDisabled):
			found.Disabled = err
		default:
			found.Errors = append(found.Errors, err)
		}
	})
	w.subject(ctx, s)
	slices.SortStableFunc(rules, func(a, b pooled) int { return strings.Compare(a.policyID, b.policyID) })
	for _, p := range rules {
		found.Rules = append(found.Rules, p.Sourced)
	}
	return found
}
