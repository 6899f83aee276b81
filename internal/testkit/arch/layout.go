package arch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Among is how the packages of a group may import each other.
type Among int

const (
	// Never: not at all.
	Never Among = iota
	// Downwards: those that stand later in the list.
	Downwards
	// Freely: as they like; Go forbids cycles.
	Freely
)

// Group is one layer of the layout.
type Group struct {
	// Name is what Uses and the table call it.
	Name string
	// Packages are directories. Each covers the directories below it that no
	// other entry names, and within what it covers imports are free.
	Packages []string
	Among    Among
	// Uses are the groups that it may import.
	Uses []string
	// Pure packages do no I/O and read no clock.
	Pure bool
	// TestOnly packages may be imported by test files and by each other only.
	TestOnly bool
	// Interface is the most methods that an interface may have; 0 is 5.
	Interface int
}

// Rule is a name that may be used in some packages only.
type Rule struct {
	// Name is the rule's, for exemptions and messages.
	Name string
	// Import and Names are what is ruled: these names of this package.
	Import string
	Names  []string
	// Allowed are the packages, with those below, that may use them.
	Allowed []string
	// Why is the remedy, for the reader of a violation.
	Why string
}

// Ban keeps imports, with what lies below them, out of a package.
type Ban struct {
	Package string
	Imports []string
	Why     string
}

// Exemption takes one thing off one rule.
type Exemption struct {
	// Where is a file, a package, or file:Function.
	Where, Rule string
	// Reason is for the reader.
	Reason string
}

// Layout is an architecture: groups, their arrows, and rules.
type Layout struct {
	Groups []Group
	Rules  []Rule
	// Fields are struct fields that only some packages may read, with Names
	// holding the fields and Import unused.
	Fields []Rule
	// Bans are imports that a package may not have, in production or test.
	Bans []Ban
	// Unreachable lists, for a main package, a directory that must not be
	// linked into it.
	Unreachable map[string]string
	// Depths bound the chains of imports.
	Depths     []Depth
	Exemptions []Exemption
	// Allowances are how many violations of a rule a package may have, by rule and package,
	// and for "methods" how many methods a receiver.
	Allowances map[string]map[string]int
}

// Depth bounds the longest chain of production imports that begins with a package.
type Depth struct {
	From string
	// Within counts the packages at and below this directory only; empty counts all.
	Within string
	// Most is the largest number of packages in a chain, From included.
	Most int
}

// Violation is one broken rule.
type Violation struct {
	// Where is the file, package or file:Function; Line is 0 for a package.
	Where string
	Line  int
	Rule  string
	Text  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.Where, v.Line, v.Rule, v.Text)
}

// Check returns every violation, sorted, exemptions taken off.
func (l Layout) Check(m *Module) []Violation {
	c := &checker{Layout: l, Module: m}
	c.arrows()
	imports := c.production()
	c.reach(imports)
	c.depth(imports)
	for _, f := range m.files {
		c.names(f)
		c.fields(f)
		c.pure(f)
		c.banned(f)
		c.idioms(f)
		c.logKeys(f)
		c.shape(f)
		c.density(f)
		c.complexity(f)
		c.contexts(f)
		c.documented(f)
	}
	c.packages()
	c.methods()
	c.allow()
	return c.exempt()
}

type checker struct {
	Layout
	*Module
	found []Violation
}

func (c *checker) report(where string, line int, rule, format string, args ...any) {
	c.found = append(c.found, Violation{where, line, rule, fmt.Sprintf(format, args...)})
}

// exempt takes the exemptions off. One that is not needed is a violation, so
// that the list stays short.
func (c *checker) exempt() []Violation {
	var remaining []Violation
	used := make([]bool, len(c.Exemptions))
	for _, v := range c.found {
		i := slices.IndexFunc(c.Exemptions, func(e Exemption) bool { return e.Where == v.Where && e.Rule == v.Rule })
		if i < 0 {
			remaining = append(remaining, v)
			continue
		}
		used[i] = true
	}
	for i, e := range c.Exemptions {
		if !used[i] {
			remaining = append(remaining, Violation{e.Where, 0, e.Rule, "this exemption is not needed any more"})
		}
		if e.Reason == "" {
			remaining = append(remaining, Violation{e.Where, 0, e.Rule, "an exemption wants a reason"})
		}
	}
	slices.SortFunc(remaining, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.Where, b.Where),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Text, b.Text),
		)
	})
	return remaining
}

// locate returns the group of a package and its entry in the list.
func (l Layout) locate(pkg string) (group *Group, entry int) {
	longest := -1
	for g := range l.Groups {
		for i, p := range l.Groups[g].Packages {
			if covers(p, pkg) && len(p) > longest {
				longest, group, entry = len(p), &l.Groups[g], i
			}
		}
	}
	return group, entry
}

func covers(dir, pkg string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func anyCovers(dirs []string, pkg string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return covers(d, pkg) })
}

// testOnly reports whether a package only ever runs in tests.
func (l Layout) testOnly(pkg string) bool {
	g, _ := l.locate(pkg)
	return g != nil && g.TestOnly
}

// Table returns the table of arrows in Markdown, for the architecture page.
func (l Layout) Table() string {
	var b strings.Builder
	b.WriteString("| Group | Packages | Among themselves | May import |\n|---|---|---|---|\n")
	for _, g := range l.Groups {
		uses := strings.Join(g.Uses, ", ")
		if uses == "" {
			uses = "nothing of ours"
		}
		if g.TestOnly {
			uses += "; imported by tests only"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", g.Name, strings.Join(g.Packages, "` `"), among(g), uses)
	}
	return b.String()
}

func among(g Group) string {
	switch {
	case len(g.Packages) == 1:
		return "–"
	case g.Among == Downwards:
		return "left imports right"
	case g.Among == Freely:
		return "free"
	default:
		return "never"
	}
}
