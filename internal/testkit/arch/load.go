package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the parsed source of one Go module.
type Module struct {
	// Path is the module path.
	Path  string
	files []*file
	fset  *token.FileSet
}

// file is one Go file.
type file struct {
	name string // slash-separated, from the module's root
	pkg  string // its directory; "." is the root
	test bool
	src  []byte
	ast  *ast.File
	// imports are import paths by the name that the file uses.
	imports map[string]string
}

// Load parses every Go file under fsys. It leaves out testdata, hidden
// directories and nested modules.
func Load(fsys fs.FS, module string) (*Module, error) {
	m := &Module{Path: module, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && skipDir(fsys, name) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		return m.add(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("load module %s: %w", module, err)
	}
	return m, nil
}

func skipDir(fsys fs.FS, name string) bool {
	base := path.Base(name)
	if slices.Contains([]string{"testdata", "vendor"}, base) || strings.ContainsAny(base[:1], "._") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return err == nil
}

func (m *Module) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	// With object resolution, on purpose: it distinguishes a package's name from a
	// variable's.
	parsed, err := parser.ParseFile(m.fset, name, src, parser.ParseComments)
	if err != nil {
		return err
	}
	f := &file{
		name:    name,
		pkg:     path.Dir(name),
		test:    strings.HasSuffix(name, "_test.go"),
		src:     src,
		ast:     parsed,
		imports: map[string]string{},
	}
	for _, spec := range parsed.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		f.imports[localName(spec, to)] = to
	}
	m.files = append(m.files, f)
	return nil
}

func localName(spec *ast.ImportSpec, to string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	base := path.Base(to)
	// A major version is no name: math/rand/v2 is rand.
	if _, err := strconv.Atoi(strings.TrimPrefix(base, "v")); err == nil && strings.HasPrefix(base, "v") {
		base = path.Base(path.Dir(to))
	}
	return base
}

// inModule returns the package's directory if the import path is ours.
func (m *Module) inModule(to string) (string, bool) {
	if to == m.Path {
		return ".", true
	}
	return strings.CutPrefix(to, m.Path+"/")
}

// line returns the line of a node.
func (m *Module) line(pos token.Pos) int { return m.fset.Position(pos).Line }

// selectors calls visit for every use of a name of an imported package.
func (f *file) selectors(visit func(importPath, name string, pos token.Pos)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && f.imported(s.X) != "" {
			visit(f.imported(s.X), s.Sel.Name, s.Pos())
		}
		return true
	})
}

// imported returns the import path of the package that an expression names, or an empty string.
func (f *file) imported(x ast.Expr) string {
	name, ok := x.(*ast.Ident)
	if !ok || name.Obj != nil {
		return ""
	}
	return f.imports[name.Name]
}
