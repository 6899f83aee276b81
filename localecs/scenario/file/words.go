package file

import (
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

// Host among an image's programs is everything that this machine has installed.
const Host = "host"

// own is the directory of programs without a place. It is the first on PATH: a
// stand-in wins over a program of that name on this machine.
const own = "/localecs/bin"

// installed returns the parts of a machine that programs need. What is not there is left out.
func installed() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/share",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/share", "/usr/local/go",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/mime.types",
		"/etc/localtime",
	}
}

// CheckWords returns an error for words of which one is empty.
func CheckWords(words []string) error {
	if slices.Contains(words, "") {
		return fmt.Errorf("a program is missing; %s stands for all that this machine has installed", Host)
	}
	return nil
}

// addWords adds to the image what its words stand for. The first program is its CMD unless there is one, or an
// ENTRYPOINT. The errors have all that is not on this machine.
func (p Programs) addWords(i *runtime.Image, dir string, vars map[string]string,
	resolver *runtime.Resolver) (errs []error) {
	if p.Words == nil {
		return nil
	}
	if p.Flag {
		dir = ""
	}
	i.Env = append([]string{"PATH=" + own + ":" + runtime.DefaultPath}, i.Env...)
	for _, word := range p.Words {
		first, err := addWord(i, word, dir, vars, resolver)
		if err != nil {
			errs = append(errs, err)
		} else if first != "" && len(i.Cmd) == 0 && len(i.Entrypoint) == 0 {
			i.Cmd = []string{first}
		}
	}
	return append(errs, hidden(i)...)
}

// addWord adds what a word stands for to the image. program is its path in the container if it is a program.
func addWord(i *runtime.Image, word, dir string, vars map[string]string, resolver *runtime.Resolver) (program string,
	err error) {
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
	source, paths, err := locate(host, dir, vars)
	if err != nil {
		return "", err
	}
	if target != "" {
		paths = []string{target}
	}
	if st, err := os.Stat(source); err == nil && st.IsDir() {
		i.Files[paths[0]] = source
		return "", nil
	}
	if _, err := resolver.Libraries(runtime.Bind{Source: source, Target: paths[0]}); err != nil {
		return "", fmt.Errorf("%s: %w", host, err)
	}
	for _, p := range paths {
		i.Programs[p] = source
	}
	return paths[0], nil
}

// hidden returns an error for each program whose path is in a directory of this machine that lacks it: the directory is
// read-only, so the program cannot be added.
func hidden(i *runtime.Image) (errs []error) {
	for _, target := range slices.Sorted(maps.Keys(i.Programs)) {
		for dir := path.Dir(target); dir != "/"; dir = path.Dir(dir) {
			of := i.Files[dir]
			if of == "" {
				continue
			}
			if _, err := os.Stat(path.Join(of, strings.TrimPrefix(target, dir))); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s is a read-only directory of this machine; without a path in "+
					"the container the program comes first on PATH", target, dir))
			}
		}
	}
	return errs
}

// locate returns a file of this machine, and where it is in a container by itself: a name on PATH wherever it is here,
// an absolute path there, a relative one, which begins at dir, in own. Names and variables are on the container's PATH,
// too.
func locate(word, dir string, vars map[string]string) (source string, paths []string, err error) {
	host, used, err := fill(word, vars)
	switch {
	case err != nil:
		return "", nil, err
	case !strings.Contains(host, "/"):
		found, err := exec.LookPath(host)
		if err != nil {
			return "", nil, fmt.Errorf("%s: no program of that name is on PATH; give its path, ./%s for one in this "+
				"directory", host, host)
		}
		paths = []string{found}
		for _, dir := range filepath.SplitList(runtime.DefaultPath) {
			if p := path.Join(dir, host); p != found && same(p, found) {
				paths = append(paths, p)
			}
		}
		paths, host = onPath(paths), found
	case path.IsAbs(host):
		if paths = []string{path.Clean(host)}; used != nil {
			paths = onPath(paths)
		}
	default:
		paths, host = []string{path.Join(own, path.Base(host))}, filepath.Join(dir, host)
	}
	source, err = filepath.EvalSymlinks(host)
	if err != nil {
		return "", nil, fmt.Errorf("%s: there is no such file", word)
	}
	source, err = filepath.Abs(source)
	return source, paths, err
}

// onPath adds a path in own unless one is in a directory of the container's PATH.
func onPath(paths []string) []string {
	dirs := filepath.SplitList(runtime.DefaultPath)
	if slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(dirs, path.Dir(p)) }) {
		return paths
	}
	return append(paths, path.Join(own, path.Base(paths[0])))
}

// same reports whether two paths are one file, as /bin/sh and /usr/bin/sh often are.
func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
