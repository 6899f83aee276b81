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
	// Datacenter is the resolver's.
	Datacenter string
	Rules      []Sourced
	// Errors are about what is missing; Notes about what does not count, on the
	// server either: dangling links, and policies of other datacenters.
	Errors, Notes []error
	// Refused is why the subject has no rights at all, and Disabled why every
	// subject has all of them; nil otherwise.
	Refused, Disabled error

	// far are the rules, and farErrors the errors, of what counts in other datacenters only.
	far       []Sourced
	farErrors []error
}

// Resolve visits a subject and keeps everything. Rules are in the order in which
// the server pools them, by their policies' IDs: where two levels are not in
// lower case, the first counts.
func (r Resolver) Resolve(ctx context.Context, s Subject) Resolution {
	found := Resolution{Datacenter: r.Datacenter}
	var w *walk
	w = r.walk(func(source fmt.Stringer, rule *Rule, err error) {
		here := countsIn(r.Datacenter, w.datacenters)
		sourced := Sourced{rule, source, w.datacenters, w.policyID}
		switch {
		case err == nil && here:
			found.Rules = append(found.Rules, sourced)
		case err == nil:
			found.far = append(found.far, sourced)
		case complete(err):
			found.Notes = append(found.Notes, err)
		case !here:
			found.farErrors = append(found.farErrors, err)
		case errors.Is(err, ErrRefused):
			found.Refused = errors.Join(found.Refused, err)
		case errors.Is(err, ErrDisabled):
			found.Disabled = err
		default:
			found.Errors = append(found.Errors, err)
		}
	})
	w.subject(ctx, s)
	slices.SortStableFunc(found.Rules, byPolicyID)
	return found
}

func byPolicyID(a, b Sourced) int { return strings.Compare(a.policyID, b.policyID) }

// countsIn reports whether something that is limited to some datacenters, or to none of
// them, counts in one.
func countsIn(datacenter string, limits []string) bool {
	return len(limits) == 0 || slices.Contains(limits, datacenter)
}
