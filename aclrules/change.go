package aclrules

import (
	"slices"
	"strings"
)

// Change is the smallest change of rules that turns an answer: from deny or
// unknown into allow, from allow into deny.
type Change struct {
	// Remove are rules in whose presence nothing could be added. Of a question about
	// intentions it is what they state of these.
	Remove []Sourced
	// Add is policy text; empty when removing is enough.
	Add string
}

// change returns the change for the table's own rules: those that could not be read may stand in its way.
func (t *Table) change(q Query) Change {
	if t.Decide(q).Verdict == Allowed {
		return Change{Add: t.refusal(q)}
	}
	var c Change
	switch {
	case q.Resource.IsScalar():
		t.raise(&c, q, t.scalars[q.Resource], Rule{Resource: q.Resource}, t.inherited(q))
	case q.Resource == Intention:
		t.raiseIntention(&c, q)
	case q.Access == WritePrefix:
		t.raisePrefix(&c, q)
	default:
		i := t.segments[q.Resource]
		t.raise(&c, q, i.exact[q.Segment], Rule{Resource: q.Resource, Segment: q.Segment},
			i.longest(q.Segment).verdict(q))
	}
	return c
}

// inherited returns the answer for a scalar that has no rule.
func (t *Table) inherited(q Query) Verdict {
	from := inheritedFrom(q.Resource)
	if from == q.Resource {
		return Unknown
	}
	return t.scalars[from].verdict(q)
}

// raiseIntention changes the rules of services, which carry those of intentions.
func (t *Table) raiseIntention(c *Change, q Query) {
	services := t.segments[Service]
	if q.Segment != "*" {
		t.raise(c, q, services.exact[q.Segment], Rule{Resource: Service, Segment: q.Segment},
			services.longest(q.Segment).verdict(q))
		return
	}
	if q.Access != ReadAccess { // any service suffices to read
		for _, e := range services.sorted {
			if e.grantsIntentions < LevelWrite && !(e.prefix && e.segment == "") {
				t.raise(c, q, e, Rule{Resource: Service, Prefix: e.prefix, Segment: e.segment}, Allowed)
			}
		}
	}
	t.raise(c, q, services.prefix[""], Rule{Resource: Service, Prefix: true}, Unknown)
}

// raisePrefix makes every key below a prefix writable.
func (t *Table) raisePrefix(c *Change, q Query) {
	keys := t.segments[Key]
	for _, e := range keys.below(q.Segment) {
		if e.grants < LevelWrite && !(e.prefix && e.segment == q.Segment) {
			t.raise(c, q, e, Rule{Resource: Key, Prefix: e.prefix, Segment: e.segment}, Allowed)
		}
	}
	own, shorter := keys.prefix[q.Segment], keys.longest(q.Segment)
	if own != nil {
		shorter = keys.wider(own)
	}
	t.raise(c, q, own, Rule{Resource: Key, Prefix: true, Segment: q.Segment}, shorter.verdict(q))
}

// raise makes an entry, which may be nil, grant what the query needs: without
// its denies, and with a rule of the level that is then still missing. Otherwise is the
// answer when nothing of the entry is left, Unknown for the default policy's.
func (t *Table) raise(c *Change, q Query, e *entry, r Rule, otherwise Verdict) {
	var rest []Sourced
	if e != nil {
		for _, s := range e.rules {
			if levelText(s.Rule, q) == "deny" {
				c.Remove = append(c.Remove, s)
				for before := s.Rule.Overridden; before != nil; before = before.Overridden {
					c.Remove = append(c.Remove, Sourced{Rule: before, Source: s.Source})
				}
				if q.Resource != Intention {
					continue
				}
				s.Rule = s.Rule.withoutIntentions() // what it grants on the service stays
			}
			rest = append(rest, s)
		}
	}
	var remaining *entry
	if len(rest) > 0 {
		remaining = &entry{resource: e.resource, prefix: e.prefix, segment: e.segment, rules: rest}
		remaining.settle()
		otherwise = remaining.verdict(q)
	}
	if otherwise == Unknown {
		otherwise = t.byDefault(q.Resource)
	}
	needed := q.Access.needs()
	r.Level = needed.String()
	switch {
	case q.Resource == Intention:
		r.Level, r.Intentions = t.serviceLevel(r), needed.String()
	case q.Resource == Service && losesIntentions(e, remaining):
		r.Intentions = e.grantsIntentions.String()
		if otherwise == Allowed {
			r.Level, otherwise = t.remainingLevel(remaining, r.Segment), Unknown
		}
	}
	if otherwise == Allowed {
		return
	}
	c.Add = strings.TrimPrefix(c.Add+"\n"+r.HCL(), "\n")
}

// losesIntentions reports whether what an entry states of intentions is not in what remains
// of it. Both may be nil.
func losesIntentions(e, remaining *entry) bool {
	if e == nil || e.intentions < 0 {
		return false
	}
	return remaining == nil || remaining.intentions < 0 || remaining.grantsIntentions != e.grantsIntentions
}

// remainingLevel returns the level of a service by what remains of its entry, which may be nil, by the
// longest prefix or by the default policy, which allows.
func (t *Table) remainingLevel(remaining *entry, service string) string {
	if remaining == nil {
		remaining = t.segments[Service].longest(service)
	}
	if remaining == nil {
		return LevelWrite.String()
	}
	return remaining.grants.String()
}

// serviceLevel returns the level for services that a rule about intentions has to state: what is in force
// already, so that nothing else changes.
func (t *Table) serviceLevel(r Rule) string {
	services := t.segments[Service]
	e := services.longest(r.Segment)
	if !r.Prefix {
		e = services.find(r.Segment)
	}
	if e == nil {
		return LevelRead.String()
	}
	return e.grants.String()
}

// refusal returns the text that turns an allow into a deny.
func (t *Table) refusal(q Query) string {
	r := Rule{Resource: q.Resource, Segment: q.Segment, Level: "deny"}
	switch {
	case q.Resource == Intention && q.Segment == "*":
		r = Rule{Resource: Service, Prefix: true, Intentions: "deny"}
		r.Level = t.serviceLevel(r)
		if q.Access == ReadAccess { // every rule that grants it must be refused
			return t.refuseAll(q)
		}
	case q.Resource == Intention:
		r.Resource, r.Intentions = Service, "deny"
		r.Level = t.serviceLevel(r)
	case q.Access == WritePrefix:
		r.Prefix = true
	case q.Resource.IsScalar():
		r.Segment = ""
	}
	return r.HCL()
}

// refuseAll denies the intentions of every entry that lets some be read.
func (t *Table) refuseAll(q Query) string {
	var texts []string
	for _, e := range t.segments[Service].sorted {
		if e.verdict(q) == Allowed {
			r := Rule{Resource: Service, Prefix: e.prefix, Segment: e.segment, Level: e.grants.String(),
				Intentions: "deny"}
			texts = append(texts, r.HCL())
		}
	}
	if t.segments[Service].prefix[""] == nil { // no rule covers the rest
		r := Rule{Resource: Service, Prefix: true, Intentions: "deny"}
		r.Level = t.serviceLevel(r)
		texts = append(texts, r.HCL())
	}
	return strings.Join(slices.Compact(texts), "\n")
}
