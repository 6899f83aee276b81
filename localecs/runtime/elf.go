package runtime

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// cachePath is the dynamic loader's list of libraries. A container gets it
// when a library was found through it, since its loader has to find it too.
const cachePath = "/etc/ld.so.cache"

// defaultDirs is where dynamic loaders look without being told: Debian's
// multiarch directories, the 64-bit ones of others, and the traditional ones.
func defaultDirs() []string {
	return []string{
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
	}
}

// object is a program or library on its way into a container.
type object struct {
	source, target string
	file           *elf.File
	// inherited is the DT_RPATH chain of the objects that loaded it.
	inherited []searchDir
}

// searchDir is a directory as the host sees it and as the container will.
// They differ for $ORIGIN, since a program may have another path inside.
type searchDir struct{ source, target string }

// closure is the walk over one program's libraries.
type closure struct {
	cache map[string][]string
	binds []Bind
	seen  map[string]bool // library names
	queue []object
	files []*elf.File
}

func (c *closure) close() {
	for _, f := range c.files {
		f.Close()
	}
}

// dependencies returns the binds of a program's interpreter and libraries.
// A static program, a script or data has none.
func dependencies(b Bind, cache map[string][]string) ([]Bind, error) {
	f, err := openProgram(b.Source)
	if f == nil || err != nil {
		return nil, err
	}
	c := &closure{cache: cache, seen: map[string]bool{}, files: []*elf.File{f}}
	defer c.close()
	interpreter, err := interpreterOf(f)
	if err != nil || interpreter == "" {
		return nil, err
	}
	if _, err := os.Stat(interpreter); err != nil {
		return nil, fmt.Errorf("%s needs the dynamic loader %s: %w", b.Source, interpreter, err)
	}
	source, err := filepath.EvalSymlinks(b.Source)
	if err != nil {
		return nil, err
	}
	c.add(Bind{interpreter, interpreter})
	c.queue = []object{{source: source, target: b.Target, file: f}}
	for len(c.queue) > 0 {
		o := c.queue[0]
		c.queue = c.queue[1:]
		if err := c.visit(o); err != nil {
			return nil, err
		}
	}
	return c.binds, nil
}

// openProgram is nil for what is no ELF file: a script, or data. A program that
// this machine cannot run is an error.
func openProgram(name string) (*elf.File, error) {
	f, err := elf.Open(name)
	var format *elf.FormatError
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if short || errors.As(err, &format) {
		program, unread := hasMagic(name)
		switch {
		case unread != nil || !program:
			return nil, unread
		case short:
			return nil, fmt.Errorf("%s is cut short: copy or build it again", name)
		}
		return nil, fmt.Errorf("%s is a damaged program: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	if own, ok := ownMachine(); ok && foreign(f.Machine, own) && len(emulators()) == 0 {
		f.Close()
		return nil, fmt.Errorf("%s is a program for %s, but this machine is %s", name, machineName(f.Machine), machineName(own))
	}
	return f, nil
}

func hasMagic(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == elf.ELFMAG, nil
}

func ownMachine() (elf.Machine, bool) {
	m, ok := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	return m, ok
}

// foreign leaves the 32-bit sisters of a machine to the kernel.
func foreign(program, own elf.Machine) bool {
	sister := map[elf.Machine]elf.Machine{elf.EM_X86_64: elf.EM_386, elf.EM_AARCH64: elf.EM_ARM}[own]
	return program != own && program != sister
}

func machineName(m elf.Machine) string {
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

// emulators are the kernel's helpers for programs of other machines.
func emulators() []string {
	found, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	return found
}

// Interpreter is the dynamic loader that a program names; empty for one without.
func Interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return interpreterOf(f)
}

func interpreterOf(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

func (c *closure) add(b Bind) { c.binds = append(c.binds, b) }

// visit finds the libraries one object names.
func (c *closure) visit(o object) error {
	needed, err := o.file.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read the libraries of %s: %w", o.source, err)
	}
	search, chain := o.search()
	for _, name := range needed {
		if c.seen[name] {
			continue
		}
		c.seen[name] = true
		lib, err := c.find(name, search, o.file)
		if err != nil {
			return fmt.Errorf("%s needs the library %s: %w", o.source, name, err)
		}
		c.files = append(c.files, lib.file)
		lib.inherited = chain
		c.add(Bind{lib.source, lib.target})
		c.queue = append(c.queue, lib)
	}
	return nil
}

// search returns the directories that the object names for its own libraries,
// and the part of them that its libraries inherit: DT_RPATH is inherited and
// counts only without DT_RUNPATH, which is not.
func (o object) search() (search, chain []searchDir) {
	chain = o.inherited
	if dirs, _ := o.file.DynString(elf.DT_RUNPATH); len(dirs) > 0 {
		return o.expand(dirs), chain
	}
	if dirs, _ := o.file.DynString(elf.DT_RPATH); len(dirs) > 0 {
		chain = append(o.expand(dirs), chain...) // a fresh slice
	}
	return chain, chain
}

func (o object) expand(lists []string) []searchDir {
	var dirs []searchDir
	for _, list := range lists {
		for dir := range strings.SplitSeq(list, ":") {
			dirs = append(dirs, searchDir{withOrigin(dir, o.source), withOrigin(dir, o.target)})
		}
	}
	return dirs
}

func withOrigin(dir, object string) string {
	origin := path.Dir(object)
	return path.Clean(strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir))
}

// find looks where the dynamic loader will: named directories, cache, default
// directories. A file of another architecture does not count. A host that can
// open no file at all says nothing about any of them.
func (c *closure) find(name string, search []searchDir, like *elf.File) (object, error) {
	if strings.Contains(name, "/") {
		return openObject(hostDir(path.Dir(name)), path.Base(name), like)
	}
	for _, dir := range search {
		if o, err := openObject(dir, name, like); err == nil || outOfFiles(err) {
			return o, err
		}
	}
	for _, p := range c.cache[name] {
		o, err := openObject(hostDir(path.Dir(p)), path.Base(p), like)
		if err == nil && !c.seen[cachePath] {
			c.seen[cachePath] = true
			c.add(Bind{cachePath, cachePath})
		}
		if err == nil || outOfFiles(err) {
			return o, err
		}
	}
	for _, dir := range defaultDirs() {
		if o, err := openObject(hostDir(dir), name, like); err == nil || outOfFiles(err) {
			return o, err
		}
	}
	return object{}, errors.New("not found on this host")
}

// hostDir is a directory that has the same path in a container.
func hostDir(dir string) searchDir { return searchDir{dir, dir} }

// outOfFiles tells the failure to open a file that may well be there.
func outOfFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

func openObject(dir searchDir, name string, like *elf.File) (object, error) {
	source := path.Join(dir.source, name)
	f, err := elf.Open(source)
	if err != nil {
		return object{}, err
	}
	if f.Class != like.Class || f.Machine != like.Machine {
		f.Close()
		return object{}, fmt.Errorf("%s is for another machine", source)
	}
	return object{source: source, target: path.Join(dir.target, name), file: f}, nil
}
