package scenario

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// own is the directory for programs that have no place of their own. It is
// the first on PATH: a stand-in wins over what the machine has of that name.
const own = "/localecs/bin"

// searched are the directories of programs in a container.
var searched = [...]string{own, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// installed are the parts of a machine that programs need. What is not there is
// left out.
func installed() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/share",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/share", "/usr/local/go",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/mime.types", "/etc/localtime",
	}
}

// Knows reports whether the flags have programs for an image.
func (f *Flags) Knows(name string) bool {
	_, ok := given(f.programs, name)
	return ok
}

// Image is what the flags say of an image, on top of base, which may be empty. The
// first program is its CMD unless there is one, or an ENTRYPOINT. The error has all
// that is not on this machine.
func (f *Flags) Image(name string, base runtime.Image) (runtime.Image, error) {
	i := base
	i.Name = name
	words, ok := given(f.programs, name)
	var errs []error
	if ok {
		i.Programs, i.Files, i.Dirs = map[string]string{}, map[string]string{}, nil
		i.Env = append([]string{"PATH=" + strings.Join(searched[:], ":")}, i.Env...)
		for _, word := range words {
			first, err := place(&i, word)
			if err != nil {
				errs = append(errs, fmt.Errorf("-image %s: %w", name, err))
				continue
			}
			if first != "" && len(i.Cmd) == 0 && len(i.Entrypoint) == 0 {
				i.Cmd = []string{first}
			}
		}
		errs = append(errs, hidden(i))
	}
	if words, ok := given(f.entrypoints, name); ok {
		i.Entrypoint = words
		if len(i.Cmd) == 1 && len(base.Cmd) == 0 {
			i.Cmd = nil // was only a guess
		}
	}
	if words, ok := given(f.commands, name); ok {
		i.Cmd = words
	}
	return i, errors.Join(errs...)
}

// place puts what a word says into the image. program is its path in the container
// if it is a program.
func place(i *runtime.Image, word string) (program string, err error) {
	if word == Host {
		for _, p := range installed() {
			if source, err := filepath.EvalSymlinks(p); err == nil {
				i.Files[p] = source
			}
		}
		return "", nil
	}
	host, target, _ := strings.Cut(word, ":")
	if target != "" && !path.IsAbs(target) {
		return "", fmt.Errorf("%s: %q is no path in a container: it begins with /", word, target)
	}
	source, places, err := find(host)
	if err != nil {
		return "", err
	}
	if target != "" {
		places = []string{target}
	}
	if st, err := os.Stat(source); err == nil && st.IsDir() {
		i.Files[places[0]] = source
		return "", nil
	}
	var resolver runtime.Resolver
	if _, err := resolver.Libraries(runtime.Bind{Source: source, Target: places[0]}); err != nil {
		return "", fmt.Errorf("%s: %w", host, err)
	}
	for _, p := range places {
		i.Programs[p] = source
	}
	return places[0], nil
}

// hidden are programs for which there is no place: in a directory of this machine,
// which nobody may write, and where there is none of that name.
func hidden(i runtime.Image) error {
	var errs []error
	for _, target := range slices.Sorted(maps.Keys(i.Programs)) {
		for dir := path.Dir(target); dir != "/"; dir = path.Dir(dir) {
			of := i.Files[dir]
			if of == "" {
				continue
			}
			if _, err := os.Stat(path.Join(of, strings.TrimPrefix(target, dir))); err != nil {
				errs = append(errs, fmt.Errorf("-image %s: %s: %s is this machine's and read-only; leave the place away, and the program comes first on PATH", i.Name, target, dir))
			}
		}
	}
	return errors.Join(errs...)
}

// find is a file of this machine, and where it lies in a container by itself: a
// name on PATH wherever it is here, an absolute path there, another one in own.
func find(host string) (source string, places []string, err error) {
	switch {
	case !strings.Contains(host, "/"):
		found, err := exec.LookPath(host)
		if err != nil {
			return "", nil, fmt.Errorf("%s: no program of that name is on PATH; give its path, ./%s for one that lies here", host, host)
		}
		places = []string{found}
		for _, dir := range searched[1:] {
			if p := path.Join(dir, host); p != found && same(p, found) {
				places = append(places, p)
			}
		}
		host = found
	case path.IsAbs(host):
		places = []string{path.Clean(host)}
	default:
		places = []string{path.Join(own, path.Base(host))}
	}
	source, err = filepath.EvalSymlinks(host)
	if err != nil {
		return "", nil, fmt.Errorf("%s: there is no such file", host)
	}
	source, err = filepath.Abs(source)
	return source, places, err
}

// same reports whether two paths are one file, as /bin/sh and /usr/bin/sh often are.
func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
