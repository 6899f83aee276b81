package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The most methods of a receiver, the most columns of a line, where a tab takes
// four, and the most operators && and || in the condition of a test's if.
const (
	maxMethods   = 30
	maxColumns   = 120
	tabColumns   = 4
	maxOperators = 1
)

// density applies the rules about how much a reader meets at once.
func (c *checker) density(f *file) {
	if ast.IsGenerated(f.ast) {
		return
	}
	c.columns(f)
	c.comments(f)
	c.conditions(f)
}

func (c *checker) columns(f *file) {
	for i, line := range bytes.Split(f.src, []byte("\n")) {
		if n := utf8.RuneCount(line) + (tabColumns-1)*bytes.Count(line, []byte("\t")); n > maxColumns {
			c.report(f.name, i+1, "columns", "%d columns, at most %d", n, maxColumns)
		}
	}
}

var (
	testName = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)([A-Z]|$)`)
	// stative verbs say what a function is, not what it does.
	stative = regexp.MustCompile(`^\S+ (is|are|was|were|has|have|had)\b`)
)

// comments requires that a function's comment begins with its name and a verb of action.
// A test's may begin with its reason.
func (c *checker) comments(f *file) {
	for _, decl := range f.ast.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		text := d.Doc.Text()
		first, _, _ := strings.Cut(text, " ")
		named := strings.TrimRight(first, ":,.\n") == d.Name.Name
		switch {
		case text == "":
		case named && stative.MatchString(text):
			c.report(f.name, c.line(d.Pos()), "comment", "%q: say what it does", stative.FindString(text))
		case !named && !(f.test && testName.MatchString(d.Name.Name)):
			c.report(f.name, c.line(d.Pos()), "comment", "%q: begin with the name %s", first, d.Name.Name)
		}
	}
}

// conditions requires that a test's if tests one thing, so that its failure names it.
func (c *checker) conditions(f *file) {
	if !f.test {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if i, ok := n.(*ast.IfStmt); ok && operators(i.Cond) > maxOperators {
			c.report(f.name, c.line(i.Pos()), "condition",
				"a condition with %d operators && and ||, at most %d", operators(i.Cond), maxOperators)
		}
		return true
	})
}

// operators counts the && and || of an expression, without those of function literals.
func operators(x ast.Expr) int {
	n := 0
	ast.Inspect(x, func(node ast.Node) bool {
		if b, ok := node.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
			n++
		}
		_, literal := node.(*ast.FuncLit)
		return !literal
	})
	return n
}

// methods counts the production methods of each receiver.
func (c *checker) methods() {
	count := map[string]int{}
	for _, f := range c.files {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				count[f.pkg+"."+receiver(d)]++
			}
		}
	}
	for where, n := range count {
		if most := max(maxMethods, c.allowed(where, "methods")); n > most {
			c.report(where, 0, "methods", "%d methods, at most %d", n, most)
		}
	}
}

// allow drops the violations of each package that an allowance covers. Where there are more
// than it allows, their number replaces them.
func (c *checker) allow() {
	type key struct{ pkg, rule string }
	count := map[key]int{}
	for _, v := range c.found {
		count[key{path.Dir(v.Where), v.Rule}]++
	}
	c.found = slices.DeleteFunc(c.found, func(v Violation) bool {
		return c.allowed(path.Dir(v.Where), v.Rule) > 0
	})
	for k, n := range count {
		if most := c.allowed(k.pkg, k.rule); most > 0 && n > most {
			c.report(k.pkg, 0, k.rule, "%d violations, at most %d are allowed", n, most)
		}
	}
}

func (c *checker) allowed(where, rule string) int { return c.Allowances[rule][where] }
