package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"slices"
)

// The most lines of a package's production files and of a production function, and
// the most methods of an interface.
const (
	maxPackage   = 3000
	maxFunction  = 60
	maxInterface = 5
)

// shape measures one file.
func (c *checker) shape(f *file) {
	if f.test || ast.IsGenerated(f.ast) {
		return
	}
	for _, decl := range f.ast.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := c.line(d.End()) - c.line(d.Pos()) + 1; n > maxFunction {
			c.report(f.name+":"+d.Name.Name, c.line(d.Pos()), "function-size", "%d lines, at most %d", n, maxFunction)
		}
	}
	c.interfaces(f)
}

func (c *checker) interfaces(f *file) {
	most := maxInterface
	if group, _ := c.locate(f.pkg); group != nil && group.Interface > 0 {
		most = group.Interface
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > most {
			c.report(f.name, c.line(spec.Pos()), "interface-size",
				"%s has %d methods, at most %d", spec.Name.Name, i.Methods.NumFields(), most)
		}
		return true
	})
}

// packages measures what only all files together show.
func (c *checker) packages() {
	lines, documented := map[string]int{}, map[string]bool{}
	for _, f := range c.files {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		lines[f.pkg] += bytes.Count(f.src, []byte("\n"))
		documented[f.pkg] = documented[f.pkg] || f.ast.Doc != nil
	}
	for pkg, n := range lines {
		if n > maxPackage {
			c.report(pkg, 0, "package-size", "%d production lines, at most %d", n, maxPackage)
		}
		if !documented[pkg] {
			c.report(pkg, 0, "undocumented", "package %s has no package comment", pkg)
		}
	}
}

// interfaceMethods are methods whose meaning their interface gives.
var interfaceMethods = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "ServeHTTP",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
}

// documented wants a comment on everything exported.
func (c *checker) documented(f *file) {
	if f.test || f.ast.Name.Name == "main" {
		return
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			visible := d.Recv == nil || ast.IsExported(receiver(d)) && !slices.Contains(interfaceMethods, d.Name.Name)
			if exported := visible && d.Name.IsExported(); exported && d.Doc == nil {
				c.undocumented(f, d.Name.Name, d.Pos())
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				c.documentedSpec(f, d, spec)
			}
		}
	}
}

func (c *checker) documentedSpec(f *file, d *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && !commented(d.Doc, s.Doc, s.Comment) {
			c.undocumented(f, s.Name.Name, s.Pos())
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && !commented(d.Doc, s.Doc, s.Comment) {
				c.undocumented(f, name.Name, name.Pos())
			}
		}
	}
}

// commented reports whether any of the comments exists.
func commented(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(g *ast.CommentGroup) bool { return g != nil })
}

func (c *checker) undocumented(f *file, name string, pos token.Pos) {
	c.report(f.name, c.line(pos), "undocumented", "%s has no comment", name)
}

// receiver returns the name of a method's receiver type.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
