package aclrules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AuthorizationRuleResolver resolves references and subjects to rules.
type AuthorizationRuleResolver interface {
	// ReferenceRules resolves one reference to its rules, or an error and none.
	// Namespace is empty or default: others match ErrEnterprise.
	ReferenceRules(ctx context.Context, ref Reference, namespace string) ([]Sourced, error)
	// VisitRulesFor calls visit with each rule of the subject and its source, and
	// with each error met on the way; false ends the visit at once.
	VisitRulesFor(ctx context.Context, subject Subject, visit Visitor)
	// RulesFor returns every rule that can be had, and the errors of the others.
	RulesFor(ctx context.Context, subject Subject) ([]Sourced, error)
}

// Visitor gets a rule, or an error, and where it comes from.
type Visitor func(source fmt.Stringer, rule *Rule, err error) (more bool)

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
	// direct is what ReferenceRules asks about.
	direct Grants
}

// Getters read what a Resolver needs. Without Templates the built-in ones are
// what this program knows of them.
type Getters struct {
	Policies  Policies
	Roles     Roles
	Tokens    Tokens
	Logins    Logins
	Templates Templates
}

// Options are about where and when.
type ResolverOptions struct {
	// Datacenter is the answering one: what is for others does not count.
	Datacenter string
	// Now decides what has expired.
	Now time.Time
}

// Resolver resolves by getters. Every policy is read once.
type Resolver struct {
	get     Getters
	options ResolverOptions
}

var _ AuthorizationRuleResolver = (*Resolver)(nil)

// New makes a resolver.
func NewResolver(get Getters, o ResolverOptions) *Resolver { return &Resolver{get, o} }

// RulesFor implements AuthorizationRuleResolver.
func (r *Resolver) RulesFor(ctx context.Context, s Subject) ([]Sourced, error) {
	result := r.Resolve(ctx, s)
	return result.Rules, errors.Join(append(result.Errors, result.Refused, result.Disabled)...)
}

// Resolution is all that could be found out about a subject.
type Resolution struct {
	Rules []Sourced
	// Errors are about what is missing; Notes about what does not count, on the
	// server either: dangling links, and policies of other datacenters.
	Errors, Notes []error
	// Refused is why the subject has no rights at all, and Disabled why everybody
	// has all of them; nil otherwise.
	Refused, Disabled error
}

// Resolve visits a subject and keeps everything. Rules are in the order in which
// the server pools them, by their policies' IDs: where two levels are not in
// lower case, the first counts.
func (r *Resolver) Resolve(ctx context.Context, s Subject) Resolution {
	var found Resolution
	type pooled struct {
		Sourced
		policyID string
	}
	var rules []pooled
	w := r.walk(ctx)
	w.visit = func(source fmt.Stringer, rule *Rule, err error) bool {
		switch {
		case err == nil:
			rules = append(rules, pooled{Sourced{Rule: rule, Source: source}, w.policyID})
		case Complete(err):
			found.Notes = append(found.Notes, err)
		case errors.Is(err, ErrRefused):
			found.Refused = errors.Join(found.Refused, err)
		case errors.Is(err, ErrDisabled):
			found.Disabled = err
		default:
			found.Errors = append(found.Errors, err)
		}
		return true
	}
	w.subject(s)
	slices.SortStableFunc(rules, func(a, b pooled) int { return strings.Compare(a.policyID, b.policyID) })
	for _, p := range rules {
		found.Rules = append(found.Rules, p.Sourced)
	}
	return found
}

// VisitRulesFor implements AuthorizationRuleResolver.
func (r *Resolver) VisitRulesFor(ctx context.Context, s Subject, visit Visitor) {
	w := r.walk(ctx)
	w.visit = visit
	w.subject(s)
}
