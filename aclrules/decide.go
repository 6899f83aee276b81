package aclrules

// Decision is the answer to a query.
type Decision struct {
	Verdict Verdict
	// entry decided; nil when the default policy did, or none.
	entry *entry
	// because names what is missing when the verdict is Unknown.
	because reason
}

type reason uint8

const (
	none reason = iota
	missingRules
	missingDefault
)

// Decide answers a valid query, such as of ParseQuery, as the server would.
// If rules could not be read, only an answer that no further rule could change is
// definite: a deny that nothing outranks.
func (t *Table) Decide(q Query) Decision {
	verdict, e := t.rules(q)
	d := Decision{Verdict: verdict, entry: e}
	switch {
	case t.options.Incomplete && !d.final(q):
		d.Verdict, d.because = Unknown, missingRules
	case verdict == Unknown:
		d.Verdict = t.byDefault(q.Resource)
		if d.Verdict == Unknown {
			d.because = missingDefault
		}
	}
	return d
}

// byDefault returns the answer of the default policy. Even a policy of allow does
// not allow access to ACLs.
func (t *Table) byDefault(r Resource) Verdict {
	if r == ACL && t.options.Default == Allowed {
		return Denied
	}
	return t.options.Default
}

// rules returns the decision of the rules; Unknown when none applies.
func (t *Table) rules(q Query) (Verdict, *entry) {
	switch {
	case q.Resource.IsScalar():
		e := t.scalar(q.Resource)
		return e.verdict(q), e
	case q.Resource == Intention && q.Segment == "*":
		s := t.writeAllIntentions
		if q.Access == ReadAccess {
			s = t.readSomeIntention
		}
		return s.verdict, s.entry
	case q.Resource == Intention:
		e := t.segments[Service].find(q.Segment)
		return e.verdict(q), e
	case q.Access == WritePrefix:
		return t.writePrefix(q.Segment)
	}
	e := t.segments[q.Resource].find(q.Segment)
	return e.verdict(q), e
}

// scalar returns the entry in force; mesh and peering inherit operator's when they have none.
func (t *Table) scalar(r Resource) *entry {
	if e := t.scalars[r]; e != nil {
		return e
	}
	return t.scalars[inheritedFrom(r)]
}

// inheritedFrom returns the resource whose rule counts where r has none.
func inheritedFrom(r Resource) Resource {
	if r == Mesh || r == Peering {
		return Operator
	}
	return r
}

// verdict returns the verdict of an entry, which may be nil.
func (e *entry) verdict(q Query) Verdict {
	if e == nil {
		return Unknown
	}
	level := e.grants
	if q.Resource == Intention {
		level = e.grantsIntentions
	}
	if level >= q.Access.needs() {
		return Allowed
	}
	return Denied
}

// writePrefix decides about everything below a key: the longest prefix that covers it must grant write, and
// no rule inside may refuse.
func (t *Table) writePrefix(prefix string) (Verdict, *entry) {
	keys := t.segments[Key]
	covering := keys.longest(prefix)
	if covering != nil && covering.grants < LevelWrite {
		return Denied, covering
	}
	for _, e := range keys.below(prefix) {
		if e.grants < LevelWrite {
			return Denied, e
		}
	}
	if covering != nil {
		return Allowed, covering
	}
	return Unknown, nil
}

// final reports whether the verdict stands whatever other rules there may be: a
// deny in lower case for exactly this thing wins over any.
func (d *Decision) final(q Query) bool {
	e := d.entry
	if e == nil || d.Verdict != Denied || e.prefix {
		return false
	}
	if q.Resource == Intention {
		return e.segment == q.Segment && q.Segment != "*" && e.intentions >= 0 &&
			e.rules[e.intentions].Rule.Intentions == "deny"
	}
	// An entry of operator may answer for mesh; its own rule would count
	// instead. One inside a key's prefix refuses the whole.
	return e.resource == q.Resource && e.rules[e.level].Rule.Level == "deny"
}
