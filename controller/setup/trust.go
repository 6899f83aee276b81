package setup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// method plans one auth method between two writes of the controller's record: before, with
// everything that the controller will have added, and after, without what it gave up. A crash
// in between leaves a claim without trust. It returns the latter, for the end of the plan: a new
// method has no record before, and its other rules come first, as clients wait for any.
func (s State) method(p *Plan, want AuthMethod, f Observed, needs []Object) (after []Write) {
	found, read := f.Methods[want.Name]
	rules, listed := f.Rules[want.Name]
	if !read || !listed {
		return nil
	}
	c := s.claims(want.Name, rules)
	w := Write{Object: Object{kindMethod, want.Name}, Scope: want.Scope, Needs: slices.Clone(needs)}
	if found == nil {
		w.Create, w.Value = true, want.create()
		p.Writes = append(p.Writes, w)
		rule := s.recordRule(want, nil, c.decide(want.Principals, nil).after, want.TokenTTL)
		return s.record(want, nil, rule, append(w.Needs, w.Object))
	}
	have := stringList(found.Config, keyPrincipals)
	t := c.decide(want.Principals, have)
	ttl, recorded := c.tokenTTL(want, found, f.Unrenewed[want.Name], &t)
	t.ttl = ttl
	fixed, changed, err := want.compare(found, t)
	if err != nil {
		p.Refused[w.Object] = err
		return nil
	}
	c.warnWhole(s.Cluster, have, &t)
	p.Notices = append(p.Notices, t.notices...)
	was := c.own.TokenTTL.Duration
	if c.rule == nil {
		was = recorded // one write: the new rule has no ID yet
	}
	rule := s.recordRule(want, c.rule, t.before, was)
	p.Writes = append(p.Writes, s.record(want, c.rule, rule, needs)...)
	w.Needs = append(w.Needs, s.recordObject(want))
	if len(changed) > 0 {
		w.Value, w.Changed = fixed, changed
		p.Writes = append(p.Writes, w)
	}
	return s.record(want, rule, s.recordRule(want, rule, t.after, recorded), append(w.Needs, w.Object))
}

func (s State) recordObject(m AuthMethod) Object {
	return Object{kindRecord, s.controller() + " in " + m.Name}
}

// recordRule returns the rule of the controller's record of a method: the found one corrected, or a
// new one for nil.
func (s State) recordRule(
	m AuthMethod, found *api.ACLBindingRule, trust []Claim, ttl time.Duration,
) *api.ACLBindingRule {
	return Record{s.controller(), trust, TTL{ttl}}.rule(m.Name, found)
}

// record plans the write of a record's rule unless it is as found.
func (s State) record(m AuthMethod, found, want *api.ACLBindingRule, needs []Object) []Write {
	if found != nil && *found == *want {
		return nil
	}
	return []Write{{
		Object: s.recordObject(m), Scope: m.Scope, Value: want,
		Create: found == nil, Changed: []string{"Description"}, Needs: slices.Clone(needs),
	}}
}

// claims are the records of all controllers in one method.
type claims struct {
	method string
	own    Record
	// rule is that of own, nil without one.
	rule *api.ACLBindingRule
	// others are the other controllers' records.
	others []Record
	// unreadable are the IDs of rules whose records cannot be read: it is unknown what they
	// claim, so nothing may be removed.
	unreadable []string
}

// claims sorts the records among the binding rules of a method.
func (s State) claims(method string, rules []*api.ACLBindingRule) claims {
	c := claims{method: method}
	for _, rule := range rules {
		text, ok := strings.CutPrefix(rule.Description, recordPrefix)
		if !ok {
			continue
		}
		switch r, err := parseRecord(text); {
		case err != nil:
			c.unreadable = append(c.unreadable, rule.ID)
		case r.Controller != s.controller():
			c.others = append(c.others, r)
		case c.rule == nil:
			c.own, c.rule = r, rule
		}
	}
	return c
}

// claimed returns the other controller that claims an ARN, and reports whether any of
// them records that a controller added it.
func (c claims) claimed(arn string) (by string, added bool) {
	for _, r := range c.others {
		if claim, ok := r.claim(arn); ok {
			by, added = r.Controller, added || claim.Added
		}
	}
	return by, added
}

// trust is what becomes of one method's principals and tokens.
type trust struct {
	// add and remove are the differences, sorted.
	add, remove []string
	// before has every claim that the method's write needs recorded; after has
	// those that are left when it is done.
	before, after []Claim
	// ttl is the method's MaxTokenTTL.
	ttl     time.Duration
	notices []notice
}

// String returns what changes, " +<arn>" and " -<arn>" each: the log shows when a role was
// trusted.
func (t trust) String() string {
	var b strings.Builder
	for _, arn := range t.add {
		b.WriteString(" +" + arn)
	}
	for _, arn := range t.remove {
		b.WriteString(" -" + arn)
	}
	return b.String()
}

// decide compares the wanted principals of the method with those it has, and with
// who claims them.
func (c claims) decide(want, have []string) trust {
	var t trust
	for _, id := range c.unreadable {
		t.notices = append(t.notices, notice{Text: noticeUnreadable, Method: c.method, Other: id})
	}
	for _, arn := range sortedUnique(want) {
		present := slices.Contains(have, arn)
		mine, _ := c.own.claim(arn)
		_, added := c.claimed(arn)
		t.after = append(t.after, Claim{arn, added || !present || mine.Added})
		if !present {
			t.add = append(t.add, arn)
		}
	}
	t.before = slices.Clone(t.after)
	for _, claim := range c.own.Trust {
		if slices.Contains(want, claim.ARN) {
			continue
		}
		t.before = append(t.before, claim)
		if slices.Contains(have, claim.ARN) {
			t.giveUp(c, claim)
		}
	}
	byARN := func(a, b Claim) int { return cmp.Compare(a.ARN, b.ARN) }
	slices.SortFunc(t.before, byARN)
	slices.SortFunc(t.after, byARN)
	slices.Sort(t.remove)
	return t
}

// giveUp decides what to do about a claim that is no longer wanted.
func (t *trust) giveUp(c claims, claim Claim) {
	by, _ := c.claimed(claim.ARN)
	switch {
	case by != "":
		t.notices = append(t.notices, notice{Text: noticeShared, Method: c.method, ARN: claim.ARN, Other: by})
	case !claim.Added:
		t.notices = append(t.notices, notice{Text: noticeFound, Method: c.method, ARN: claim.ARN})
	case len(c.unreadable) > 0:
		// Keep the claim: once the records can be read, the trust goes.
		t.after = append(t.after, claim)
	default:
		t.remove = append(t.remove, claim.ARN)
	}
}

// warnWhole notices trust in the whole account that no controller recorded.
func (c claims) warnWhole(cluster string, have []string, t *trust) {
	roles, _ := accountRoles(cluster) // common has checked it
	whole := roles + "*"
	if !slices.Contains(have, whole) {
		return
	}
	// before has what we want and wanted; giveUp has reported the latter.
	if slices.ContainsFunc(t.before, func(l Claim) bool { return l.ARN == whole }) {
		return
	}
	if by, _ := c.claimed(whole); by == "" {
		t.notices = append(t.notices, notice{Text: noticeWhole, Method: c.method, ARN: whole})
	}
}
