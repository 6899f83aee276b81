package aclrules

import (
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
	// parent is the entry of the longest other prefix of this one's segment; of
	// prefixes only.
	parent *entry
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
		if Rank(s.Rule.Level) > Rank(e.rules[e.level].Rule.Level) {
			e.level = i + 1
		}
		if Rank(s.Rule.Intentions) > Rank(written) {
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

// implied is the level for intentions of services whose rules state none.
func implied(level string) Level {
	if level == "read" || level == "write" {
		return LevelRead
	}
	return LevelDeny
}

// index is a resource's entries, for look-up.
type index struct {
	exact, prefix map[string]*entry
	// sorted are all entries by segment, and segments theirs.
	sorted   []*entry
	segments []string
	// lengths are those of the prefixes there are, ascending, and marks their
	// beginnings of some of these lengths, each with its longest prefix.
	lengths []int
	marks   map[string]*entry
}

func (i *index) settle() {
	for _, e := range i.sorted {
		e.settle()
	}
	slices.SortStableFunc(i.sorted, func(a, b *entry) int { return strings.Compare(a.segment, b.segment) })
	var last *entry
	i.segments = make([]string, len(i.sorted))
	for at, e := range i.sorted {
		i.segments[at] = e.segment
		if !e.prefix {
			continue
		}
		// The one before begins with every prefix of this one, or is one.
		for last != nil && !strings.HasPrefix(e.segment, last.segment) {
			last = last.parent
		}
		e.parent, last = last, e
		if n, known := slices.BinarySearch(i.lengths, len(e.segment)); !known {
			i.lengths = slices.Insert(i.lengths, n, len(e.segment))
		}
	}
	i.marks = make(map[string]*entry, len(i.prefix))
	for _, e := range i.prefix {
		i.mark(e)
	}
}

// mark lets longest find a prefix: on its way to the prefix's length it must
// meet the prefix's beginnings of the lengths that it tries.
func (i *index) mark(e *entry) {
	for from, to := 0, len(i.lengths); from < to; {
		middle := (from + to) / 2
		n := i.lengths[middle]
		if n > len(e.segment) {
			to = middle
			continue
		}
		longest := e
		for longest != nil && len(longest.segment) > n {
			longest = longest.parent
		}
		i.marks[e.segment[:n]] = longest
		from = middle + 1
	}
}

// find is the entry in force for a segment: the exact one, else the longest
// prefix, else nil.
func (i *index) find(segment string) *entry {
	if e := i.exact[segment]; e != nil {
		return e
	}
	return i.longest(segment)
}

// longest is the entry of the longest prefix of a segment, nil for none. It
// halves the lengths: a beginning that is marked can only be outdone by a longer
// one, of one that is not only a shorter one can be there.
func (i *index) longest(segment string) *entry {
	var found *entry
	for from, to := 0, len(i.lengths); from < to; {
		middle := (from + to) / 2
		if n := i.lengths[middle]; n <= len(segment) {
			if e, ok := i.marks[segment[:n]]; ok {
				found, from = e, middle+1
				continue
			}
		}
		to = middle
	}
	return found
}

// covered are the entries of all prefixes of a segment, the longest first.
func (i *index) covered(segment string) []*entry {
	var found []*entry
	for e := i.longest(segment); e != nil; e = e.parent {
		found = append(found, e)
	}
	return found
}

// below are the entries at or inside a prefix, in the order of their segments.
func (i *index) below(prefix string) []*entry {
	from, _ := slices.BinarySearch(i.segments, prefix)
	to := from
	for to < len(i.segments) && strings.HasPrefix(i.segments[to], prefix) {
		to++
	}
	return i.sorted[from:to]
}

// star is what all service rules together say about the intentions of *.
type star struct {
	verdict Verdict // Unknown: the default policy decides
	entry   *entry  // the one that decided; nil for none
}

// any is the server's answer for "some service": yes if any rule grants it, no
// if only the empty prefix speaks and refuses.
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

// all is the server's answer for "every service": no if any rule refuses it,
// yes if the empty prefix grants it.
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
