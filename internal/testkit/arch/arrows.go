package arch

import (
	"slices"
	"strings"
)

// arrows compares every import of our own packages with the table.
func (c *checker) arrows() {
	for _, f := range c.files {
		group, entry := c.locate(f.pkg)
		if group == nil {
			c.report(f.name, 1, "arrow", "package %s is in no group: add it to the table", f.pkg)
			continue
		}
		for _, spec := range f.ast.Imports {
			to, ours := c.inModule(strings.Trim(spec.Path.Value, `"`))
			if !ours {
				continue
			}
			if why := c.forbidden(f, group, entry, to); why != "" {
				c.report(f.name, c.line(spec.Pos()), "arrow", "%s imports %s: %s", f.pkg, to, why)
			}
		}
	}
}

// forbidden returns why a file may not import a package of ours, or an empty string.
func (c *checker) forbidden(f *file, from *Group, entry int, to string) string {
	target, targetEntry := c.locate(to)
	switch {
	case target == nil:
		return "it is in no group"
	case target.TestOnly && (f.test || from.TestOnly):
		return ""
	case target.TestOnly:
		return "only tests may"
	case target != from && slices.Contains(from.Uses, target.Name):
		return ""
	case target != from:
		return from.Name + " may not import " + target.Name
	case entry == targetEntry, from.Among == Freely, from.Among == Downwards && f.test:
		return "" // a test may prove a package against its neighbours
	case from.Among == Never:
		return from.Name + " never import each other"
	case entry > targetEntry:
		return "it stands above"
	default:
		return ""
	}
}

// banned applies the bans.
func (c *checker) banned(f *file) {
	for _, b := range c.Bans {
		if !covers(b.Package, f.pkg) {
			continue
		}
		for _, spec := range f.ast.Imports {
			if to := strings.Trim(spec.Path.Value, `"`); anyCovers(b.Imports, to) {
				c.report(f.name, c.line(spec.Pos()), "ban", "%s imports %s: %s", f.pkg, to, b.Why)
			}
		}
	}
}

// production returns what the production files of each package import of the module.
func (c *checker) production() map[string][]string {
	imports := map[string][]string{}
	for _, f := range c.files {
		if f.test {
			continue
		}
		for _, to := range f.imports {
			if pkg, ours := c.inModule(to); ours {
				imports[f.pkg] = append(imports[f.pkg], pkg)
			}
		}
	}
	return imports
}

// depth finds chains of imports that are too long.
func (c *checker) depth(imports map[string][]string) {
	for _, d := range c.Depths {
		longest := map[string][]string{}
		var chain func(pkg string) []string
		chain = func(pkg string) []string {
			if known, ok := longest[pkg]; ok {
				return known
			}
			var below []string
			for _, to := range imports[pkg] {
				if d.Within != "" && !covers(d.Within, to) {
					continue
				}
				if found := chain(to); len(found) > len(below) {
					below = found
				}
			}
			longest[pkg] = append([]string{pkg}, below...)
			return longest[pkg]
		}
		if found := chain(d.From); len(found) > d.Most {
			c.report(d.From, 0, "depth", "%d packages in a chain of imports, at most %d: %s", len(found), d.Most,
				strings.Join(found, " > "))
		}
	}
}

// reach follows the production imports of a main package.
func (c *checker) reach(imports map[string][]string) {
	for main, unwanted := range c.Unreachable {
		seen := map[string]bool{main: true}
		for queue := []string{main}; len(queue) > 0; queue = queue[1:] {
			for _, to := range imports[queue[0]] {
				if seen[to] {
					continue
				}
				seen[to] = true
				queue = append(queue, to)
				if covers(unwanted, to) {
					c.report(main, 0, "reach", "%s is linked in, through %s", to, queue[0])
				}
			}
		}
	}
}
