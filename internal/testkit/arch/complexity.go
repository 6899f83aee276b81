package arch

import (
	"go/ast"
	"go/token"
)

// maxComplexity is the highest cyclomatic complexity of a production function.
const maxComplexity = 15

// complexity counts the branches of each function.
func (c *checker) complexity(f *file) {
	if f.test || ast.IsGenerated(f.ast) {
		return
	}
	for _, decl := range f.ast.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := branches(d) + 1; n > maxComplexity {
			c.report(f.name+":"+d.Name.Name, c.line(d.Pos()), "complexity", "complexity %d, at most %d", n,
				maxComplexity)
		}
	}
}

// branches counts the points at which a function's flow divides, function literals
// included: McCabe's number less one.
func branches(d *ast.FuncDecl) int {
	n := 0
	ast.Inspect(d, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// contexts finds struct fields of type context.Context: a context is an argument.
func (c *checker) contexts(f *file) {
	if f.test || c.testOnly(f.pkg) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			t, ok := field.Type.(*ast.SelectorExpr)
			if !ok || t.Sel.Name != "Context" {
				continue
			}
			if x, ok := t.X.(*ast.Ident); ok && f.imports[x.Name] == "context" {
				c.report(f.name, c.line(field.Pos()), "context", "a context in a struct: pass it as an argument")
			}
		}
		return true
	})
}
