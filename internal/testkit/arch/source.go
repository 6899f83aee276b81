package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// names applies the rules about names of other packages. Tests are free.
func (c *checker) names(f *file) {
	if f.test || c.testOnly(f.pkg) {
		return
	}
	f.selectors(func(importPath, name string, pos token.Pos) {
		for _, r := range c.Rules {
			if ruled := r.Import == importPath && slices.Contains(r.Names, name); ruled &&
				!anyCovers(r.Allowed, f.pkg) {
				c.report(f.name, c.line(pos), r.Name, "%s.%s: %s", importPath, name, r.Why)
			}
		}
	})
}

// fields applies the rules about struct fields, by name.
func (c *checker) fields(f *file) {
	if f.test || c.testOnly(f.pkg) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for _, r := range c.Fields {
			if slices.Contains(r.Names, s.Sel.Name) && !anyCovers(r.Allowed, f.pkg) {
				c.report(f.name, c.line(s.Pos()), r.Name, ".%s: %s", s.Sel.Name, r.Why)
			}
		}
		return true
	})
}

// impure are packages that do nothing but I/O, chance or logging.
var impure = []string{
	"crypto/rand", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net/http", "net/http/httptest",
	"os/exec", "os/signal", "os/user", "syscall", "golang.org/x/sys/unix", "github.com/hashicorp/go-hclog",
}

// pureNames are the names of mixed packages that a pure package may use, and
// impureNames those of time that it may not.
var (
	pureNames = map[string][]string{
		"os": {"Expand"},
		"net": {
			"CIDRMask", "HardwareAddr", "IP", "IPMask", "IPNet", "IPv4", "JoinHostPort", "ParseCIDR", "ParseIP",
			"ParseMAC", "SplitHostPort",
		},
	}
	impureNames = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
)

// pure keeps I/O and clocks out of pure packages.
func (c *checker) pure(f *file) {
	group, _ := c.locate(f.pkg)
	if pure := group != nil && group.Pure; !pure || f.test {
		return
	}
	for _, spec := range f.ast.Imports {
		if to := strings.Trim(spec.Path.Value, `"`); slices.Contains(impure, to) {
			c.report(f.name, c.line(spec.Pos()), "pure", "%s in a pure package: let the caller bring it", to)
		}
	}
	f.selectors(func(importPath, name string, pos token.Pos) {
		allowed, mixed := pureNames[importPath]
		clock := importPath == "time" && slices.Contains(impureNames, name)
		if clock || mixed && !slices.Contains(allowed, name) {
			c.report(f.name, c.line(pos), "pure", "%s.%s in a pure package: take the value, or now, as an argument",
				importPath, name)
		}
	})
}

// logMethods take a message and then keys and values.
var logMethods = []string{"Trace", "Debug", "Info", "Warn", "Error"}

// logKeys wants the keys of log lines to be constants of one package, so that
// the same value has the same key in every log.
func (c *checker) logKeys(f *file) {
	if f.test || c.testOnly(f.pkg) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(logMethods, method.Sel.Name) {
			return true
		}
		if f.imported(method.X) != "" {
			return true // a function such as http.Error
		}
		for i := 1; i < len(call.Args); i += 2 {
			if key, ok := call.Args[i].(*ast.BasicLit); ok {
				c.report(f.name, c.line(key.Pos()), "log-key",
					"%s: keys of log lines are constants of logkey", key.Value)
			}
		}
		return true
	})
}

// idioms applies the bans that hold everywhere.
func (c *checker) idioms(f *file) {
	for _, spec := range f.ast.Imports {
		if spec.Name != nil && spec.Name.Name == "." {
			c.report(f.name, c.line(spec.Pos()), "dot-import", "%s: rules go by the package's name", spec.Path.Value)
		}
	}
	for _, decl := range f.ast.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
			c.report(f.name, c.line(d.Pos()), "init", "init function: build it where it is needed")
		}
	}
	if f.test {
		f.selectors(func(importPath, name string, pos token.Pos) {
			if importPath == "time" && name == "Sleep" {
				c.report(f.name, c.line(pos), "sleep", "time.Sleep in a test: wait for a condition")
			}
		})
	}
}
