package aclrules

import (
	"iter"
	"slices"
	"strings"
)

// entry is what all rules for one thing come to. level and intentions are
// indexes into rules of the ones that count.
type entry struct {
	resource   Resource
	prefix     bool
	segment    string
	rules      []Sourced
	level      int
	intentions int // -1: none states intentions
	// grants is the level in force; grantsIntentions that for intentions.
	grants, grantsIntentions Level
}

// settle finds the rules that count. The level and the intentions of services
// are decided apart.
func (e *entry) settle() {
	e.intentions = -1
	first := e.rules[0].Rule
	written := first.Intentions
	if written != "" {
		e.intentions = 0
	}
	for i, s := range e.rules[1:] {
		if rank(s.Rule.Level) > rank(e.rules[e.level].Rule.Level) {
			e.level = i + 1
		}
		if rank(s.Rule.Intentions) > rank(written) {
			written, e.intentions = s.Rule.Intentions, i+1
		}
	}
	level := e.rules[e.level].Rule.Level
	e.grants, _ = LevelOf(level)
	e.grantsIntentions, _ = LevelOf(written)
	if written == "" {
		e.grantsIntentions = implied(level)
	}
}

// implied returns the level for intentions of services whose rules state none.
func implied(level string) Level {
	if level == "read" || level == "write" {
		return LevelRead
	}
	return LevelDeny
}

// index is a resource's entries, for lookup.
type index struct {
	exact, prefix map[string]*entry
	// sorted are all entries by segment.
	sorted []*entry
	// lengths are those of the prefixes, the longest first.
	lengths []int
}

func (i *index) settle() {
	for _, e := range i.sorted {
		e.settle()
	}
	slices.SortStableFunc(i.sorted, func(a, b *entry) int { return strings.Compare(a.segment, b.segment) })
	for _, e := range i.sorted {
		if e.prefix {
			i.lengths = append(i.lengths, len(e.segment))
		}
	}
	slices.SortFunc(i.lengths, func(a, b int) int { return b - a })
	i.lengths = slices.Compact(i.lengths)
}

// find returns the entry in force for a segment: the exact one, else the longest prefix, else nil.
func (i *index) find(segment string) *entry {
	if e := i.exact[segment]; e != nil {
		return e
	}
	return i.longest(segment)
}

// longest returns the entry of the longest prefix of a segment, nil for none.
func (i *index) longest(segment string) *entry {
	for e := range i.covering(segment) {
		return e
	}
	return nil
}

// covering returns the entries of all prefixes of a segment, the longest first. Rules have prefixes of few
// lengths, so each is tried.
func (i *index) covering(segment string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, n := range i.lengths {
			if n > len(segment) {
				continue
			}
			if e := i.prefix[segment[:n]]; e != nil && !yield(e) {
				return
			}
		}
	}
}

// below returns the entries at or inside a prefix, in the order of their segments.
func (i *index) below(prefix string) []*entry {
	from, _ := slices.BinarySearchFunc(i.sorted, prefix,
		func(e *entry, s string) int { return strings.Compare(e.segment, s) })
	to := from
	for to < len(i.sorted) && strings.HasPrefix(i.sorted[to].segment, prefix) {
		to++
	}
	return i.sorted[from:to]
}

// star is the decision of all service rules together about the intentions of *.
type star struct {
	verdict Verdict // Unknown: the default policy decides
	entry   *entry  // the one that decided; nil for none
}

// any returns the server's answer for "some service": yes if any rule grants it, no if only the empty prefix
// speaks and refuses.
func (i *index) any(needed Level) star {
	for _, e := range i.sorted {
		if e.grantsIntentions >= needed {
			return star{Allowed, e}
		}
	}
	if e := i.prefix[""]; e != nil {
		return star{Denied, e}
	}
	return star{}
}

// all returns the server's answer for "every service": no if any rule refuses it, yes if the empty prefix
// grants it.
func (i *index) all(needed Level) star {
	for _, e := range i.sorted {
		if e.grantsIntentions < needed {
			return star{Denied, e}
		}
	}
	if e := i.prefix[""]; e != nil {
		return star{Allowed, e}
	}
	return star{}
}
