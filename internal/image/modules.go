package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// stdlib is the name of Go's standard library among modules, as databases of vulnerabilities have it.
const stdlib = "stdlib"

// program is a program that has been built.
type program struct {
	name    string
	data    []byte
	info    *buildinfo.BuildInfo
	modules []*module // sorted by path: the main module, those that are linked, and the standard library
}

// module is a module of which a program has packages.
type module struct {
	path, version string
	sum           string            // as in go.sum; empty for the main module and the standard library
	requires      map[string]bool   // paths of the modules whose packages its packages import
	licenses      map[string]bool   // SPDX identifiers
	texts         map[string][]byte // of licences and notices, by path in the module
}

// arch returns the architecture for which the program was built.
func (p program) arch() string {
	for _, s := range p.info.Settings {
		if s.Key == "GOARCH" {
			return s.Value
		}
	}
	return ""
}

// platform returns the program's platform and its name.
func (p program) platform() string { return "linux/" + p.arch() + "/" + p.name }

// goPackage is a package as go list has it.
type goPackage struct {
	ImportPath, Dir string
	Imports         []string
	Standard        bool
	Module          *goModule
}

// goModule is a module as go list has it.
type goModule struct{ Path, Version, Sum, Dir string }

// readProgram reads a program of this module, and what go says about its modules. Those of the
// packages more are added.
func readProgram(ctx context.Context, file, version string, more ...string) (program, error) {
	p := program{name: filepath.Base(file)}
	var err error
	if p.data, err = os.ReadFile(file); err != nil {
		return p, err
	}
	if p.info, err = buildinfo.Read(bytes.NewReader(p.data)); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	p.info.Main.Version = "v" + version
	packages, err := listPackages(ctx, p.info, more)
	if err != nil {
		return p, err
	}
	modules, err := modulesOf(packages)
	if err != nil {
		return p, err
	}
	for _, m := range p.info.Deps {
		if found := modules[m.Path]; found == nil || found.version != m.Version || found.sum != m.Sum {
			return p, fmt.Errorf("%s links %s@%s, which the sources do not name", file, m.Path, m.Version)
		}
	}
	p.modules = sorted(modules)
	return p, nil
}

// sorted returns the modules by their paths.
func sorted(modules map[string]*module) []*module {
	var list []*module
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		list = append(list, modules[path])
	}
	return list
}

// listPackages lists the packages of the program, each after those that it imports.
func listPackages(ctx context.Context, info *buildinfo.BuildInfo, more []string) ([]goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-deps", "-json", info.Path}, more)...)
	cmd.Env = cmd.Environ()
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "GO") || s.Key == "CGO_ENABLED" {
			cmd.Env = append(cmd.Env, s.Key+"="+s.Value)
		}
	}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	var list []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard {
			// Without its packages' licences: those of copies of modules are Go's, and BoringCrypto is not linked.
			p.Dir = strings.TrimSuffix(p.Dir, filepath.FromSlash("/src/"+p.ImportPath))
			p.Module = &goModule{Path: stdlib, Version: strings.TrimPrefix(info.GoVersion, "go"), Dir: p.Dir}
			p.Imports = nil
		} else if p.Module.Path == info.Main.Path {
			p.Module.Version = info.Main.Version
		}
		list = append(list, p)
	}
}

// modulesOf returns the modules of the packages by path. It fails for a module without a known licence.
func modulesOf(packages []goPackage) (map[string]*module, error) {
	modules := map[string]*module{}
	owner := map[string]string{} // path of the module by that of the package
	for _, p := range packages {
		m := modules[p.Module.Path]
		if m == nil {
			m = &module{
				path: p.Module.Path, version: p.Module.Version, sum: p.Module.Sum,
				requires: map[string]bool{}, licenses: map[string]bool{}, texts: map[string][]byte{},
			}
			modules[m.path] = m
		}
		owner[p.ImportPath] = m.path
		for _, path := range p.Imports {
			if owner[path] != m.path {
				m.requires[owner[path]] = true
			}
		}
		for dir := p.Dir; len(dir) >= len(p.Module.Dir); dir = filepath.Dir(dir) {
			if err := m.addLicenses(dir, p.Module.Dir); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range modules {
		if len(m.licenses) == 0 {
			return nil, fmt.Errorf("module %s has no file with a known licence", m.path)
		}
	}
	return modules, nil
}
