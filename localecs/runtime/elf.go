package runtime

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// cachePath is the dynamic loader's list of libraries, by which it finds most of them.
const cachePath = "/etc/ld.so.cache"

// dependencies returns the binds of a program's interpreter and libraries, which the interpreter itself lists: it is
// the one that will look for them in the container. A static program, a script or data has none.
func dependencies(b Bind) ([]Bind, error) {
	f, err := openProgram(b.Source)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
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
	if source, err = filepath.Abs(source); err != nil {
		return nil, err
	}
	list := exec.Command(interpreter, "--list", source)
	list.Env = []string{} // LD_LIBRARY_PATH is not the container's
	var why strings.Builder
	list.Stderr = &why
	text, err := list.Output()
	if _, refused := errors.AsType[*exec.ExitError](err); refused { // in the loader's words, which name the library
		return nil, errors.New(strings.TrimSpace(why.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("list the libraries of %s: %w", b.Source, err)
	}
	binds := []Bind{{interpreter, interpreter}}
	if _, err := os.Stat(cachePath); err == nil {
		binds = append(binds, Bind{cachePath, cachePath})
	}
	for _, library := range listed(string(text)) {
		clean := path.Clean(library)
		binds = append(binds, Bind{clean, clean})
		// Found by $ORIGIN, it has another path where the program has.
		if rest, ok := strings.CutPrefix(library, path.Dir(source)+"/"); ok {
			binds = append(binds, Bind{clean, path.Join(path.Dir(b.Target), rest)})
		}
	}
	return binds, nil
}

func listed(text string) (paths []string) {
	for line := range strings.Lines(text) {
		_, found, _ := strings.Cut(line, " => ") // empty for the loader itself, and the kernel's own library
		if found, _, _ = strings.Cut(found, " (0x"); path.IsAbs(found) {
			paths = append(paths, found)
		}
	}
	return paths
}

// openProgram returns nil for what is no ELF file: a script, or data. A program that this machine cannot run is an
// error.
func openProgram(name string) (*elf.File, error) {
	f, err := elf.Open(name)
	var format *elf.FormatError
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if short || errors.As(err, &format) {
		program, unread := hasMagic(name)
		switch {
		case unread != nil || !program:
			return nil, unread
		case short || !hasHeader(name):
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

// hasHeader reports whether a file has room for the header of an ELF program. Package elf hides
// the end of the file behind another error there.
func hasHeader(name string) bool {
	const least = 52 // of a 32-bit program
	info, err := os.Stat(name)
	return err == nil && info.Size() >= least
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

func emulators() []string {
	found, _ := filepath.Glob("/proc/sys/fs/binfmt_misc/qemu-*")
	return found
}

// Interpreter returns the dynamic loader that a program names; empty for one without.
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
