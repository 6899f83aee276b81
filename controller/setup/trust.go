package setup

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// methods plans the auth methods between two writes of the record: before, with
// everything that the controller will have added, and after, without what it
// gave up. A crash in between leaves a claim without trust, never trust without
// a claim.
func (s State) methods(p *Plan, f Observed, needs []Object) {
	if f.Records == nil {
		return
	}
	c, err := s.readClaims(f.Records)
	if err != nil {
		for _, m := range s.Methods {
			p.Refused[Object{kindMethod, m.Name}] = err
		}
		return
	}
	for _, key := range c.unreadable {
		p.Notes = append(p.Notes, note{Text: noteUnreadable, Other: key})
	}
	before, after := s.record(c), s.record(c)
	var writes []Write
	for _, want := range s.Methods {
		w, t, err := s.method(want, f, c)
		if err != nil {
			p.Refused[Object{kindMethod, want.Name}] = err
		}
		if t == nil {
			continue // not read or refused: its claims stay
		}
		p.Notes = append(p.Notes, t.notes...)
		before.Trust[want.Name], after.Trust[want.Name] = t.before, t.after
		if w.Create || len(w.Changed) > 0 {
			w.Needs = append(slices.Clone(needs), s.recordObject())
			writes = append(writes, w)
		}
	}
	have, exists := f.Records[s.recordKey()]
	p.record(s, before, have, !exists, nil)
	p.Writes = append(p.Writes, writes...)
	written := []Object{s.recordObject()}
	for _, w := range writes {
		written = append(written, w.Object)
	}
	p.record(s, after, before.encode(), false, written)
}

// method plans one method. Its trust is nil where nothing can be done.
func (s State) method(want AuthMethod, f Observed, c claims) (Write, *trust, error) {
	found, read := f.Methods[want.Name]
	w := Write{Object: Object{kindMethod, want.Name}, Scope: want.Scope}
	switch {
	case !read:
		return w, nil, nil
	case found == nil:
		t := c.decide(want.Name, want.Principals, nil)
		w.Create, w.Value = true, want.create()
		return w, &t, nil
	}
	have := stringList(found.Config, keyPrincipals)
	t := c.decide(want.Name, want.Principals, have)
	fixed, changed, err := want.compare(found, t)
	if err != nil {
		return w, nil, err
	}
	c.warnWhole(s.Cluster, want.Name, have, &t)
	w.Value, w.Changed = fixed, changed
	return w, &t, nil
}

// record is the controller's record as it is; claims of methods that this state
// does not know stay in it.
func (s State) record(c claims) Record {
	r := Record{Cluster: s.Cluster, Trust: maps.Clone(c.own.Trust)}
	if r.Trust == nil {
		r.Trust = map[string][]Claim{}
	}
	return r
}

func (s State) recordObject() Object { return Object{kindRecord, s.recordKey()} }

// record plans the write of a record unless Consul has it, or it would be created empty.
func (p *Plan) record(s State, r Record, have []byte, create bool, needs []Object) {
	if bytes.Equal(r.encode(), have) || create && len(r.Trust) == 0 {
		return
	}
	p.Writes = append(p.Writes, Write{
		Object: s.recordObject(), Scope: s.keyScope(), Value: r,
		Create: create, Changed: []string{"trust"}, Needs: needs,
	})
}

// claims are the records of all controllers.
type claims struct {
	own Record
	// others are the other controllers' records.
	others []Record
	// unreadable are keys of others' records that cannot be read: nothing is
	// known of what they claim, so nothing may be removed.
	unreadable []string
}

// readClaims sorts the records, given by their key.
func (s State) readClaims(records map[string][]byte) (claims, error) {
	var c claims
	for _, key := range sortedKeys(records) {
		r, err := parseRecord(records[key])
		switch {
		case err != nil && key == s.recordKey():
			return claims{}, fmt.Errorf(
				"read the record of trust at KV key %s: %w; correct it, or delete it and check BoundIAMPrincipalARNs of the auth methods", key, err)
		case err != nil:
			c.unreadable = append(c.unreadable, key)
		case key == s.recordKey():
			c.own = r
		default:
			c.others = append(c.others, r)
		}
	}
	return c, nil
}

// claimed returns the other controller that claims an ARN, and reports whether any of
// them records that a controller added it.
func (c claims) claimed(method, arn string) (by string, added bool) {
	for _, r := range c.others {
		if claim, ok := r.claim(method, arn); ok {
			by, added = r.Cluster, added || claim.Added
		}
	}
	return by, added
}

// trust is what becomes of one method's principals.
type trust struct {
	// add and remove are the differences, sorted.
	add, remove []string
	// before has every claim that the method's write needs recorded; after has
	// those that are left when it is done.
	before, after []Claim
	notes         []note
}

// String is what changes, " +<arn>" and " -<arn>" each: the log shows when a role was
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

// decide compares the wanted principals of a method with those it has, and with
// who claims them.
func (c claims) decide(method string, want, have []string) trust {
	var t trust
	for _, arn := range sortedUnique(want) {
		present := slices.Contains(have, arn)
		mine, _ := c.own.claim(method, arn)
		_, added := c.claimed(method, arn)
		t.after = append(t.after, Claim{arn, added || !present || mine.Added})
		if !present {
			t.add = append(t.add, arn)
		}
	}
	t.before = slices.Clone(t.after)
	for _, claim := range c.own.Trust[method] {
		if slices.Contains(want, claim.ARN) {
			continue
		}
		t.before = append(t.before, claim)
		if slices.Contains(have, claim.ARN) {
			t.giveUp(c, method, claim)
		}
	}
	slices.Sort(t.remove)
	return t
}

// giveUp decides what to do about a claim that is no longer wanted.
func (t *trust) giveUp(c claims, method string, claim Claim) {
	by, _ := c.claimed(method, claim.ARN)
	switch {
	case by != "":
		t.notes = append(t.notes, note{Text: noteShared, Method: method, ARN: claim.ARN, Other: by})
	case !claim.Added:
		t.notes = append(t.notes, note{Text: noteFound, Method: method, ARN: claim.ARN})
	case len(c.unreadable) > 0:
		// Keep the claim: once the records can be read, the trust goes.
		t.after = append(t.after, claim)
	default:
		t.remove = append(t.remove, claim.ARN)
	}
}

// warnWhole notes trust in the whole account that no controller recorded.
func (c claims) warnWhole(cluster, method string, have []string, t *trust) {
	roles, _ := accountRoles(cluster) // common has checked it
	whole := roles + "*"
	if !slices.Contains(have, whole) {
		return
	}
	// before has what we want and wanted; giveUp has noted the latter.
	if slices.ContainsFunc(t.before, func(l Claim) bool { return l.ARN == whole }) {
		return
	}
	if by, _ := c.claimed(method, whole); by == "" {
		t.notes = append(t.notes, note{Text: noteWhole, Method: method, ARN: whole})
	}
}
