package scenario

import (
	"encoding/json"
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

// allImages is the image name that stands for every image that has no flag.
const allImages = "*"

// Host among an image's programs is everything that this machine has installed.
const Host = "host"

// Flags are the images that the command line defines. The zero value defines none.
type Flags struct {
	// programs are by image, as they were given; so are the commands.
	programs, entrypoints, commands map[string][]string
}

// Set takes NAME=PROGRAM[,PROGRAM...]. A PROGRAM is Host, the name of one on PATH,
// or a path of this machine, a directory too; ":PATH" after it is its path in the
// container.
func (f *Flags) Set(text string) error {
	name, list, ok := strings.Cut(text, "=")
	programs := strings.Split(list, ",")
	switch {
	case !ok || name == "":
		return fmt.Errorf("want IMAGE=PROGRAM[,PROGRAM...], such as %s=%s, got %q", "nginx:1.27", Host, text)
	case slices.Contains(programs, ""):
		return fmt.Errorf("%s: a program is missing; %s stands for all that this machine has installed", name, Host)
	}
	return put(&f.programs, name, programs)
}

// SetEntrypoint takes NAME=WORDS, the image's ENTRYPOINT.
func (f *Flags) SetEntrypoint(text string) error { return setWords(&f.entrypoints, text) }

// SetCommand takes NAME=WORDS, the image's CMD.
func (f *Flags) SetCommand(text string) error { return setWords(&f.commands, text) }

// names returns the images that the flags name, but for allImages.
func (f *Flags) names() []string {
	var names []string
	for _, of := range []map[string][]string{f.programs, f.entrypoints, f.commands} {
		for name := range of {
			if name != allImages {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// given returns the value of a flag for an image, or for all.
func given(of map[string][]string, image string) ([]string, bool) {
	words, ok := of[image]
	if !ok {
		words, ok = of[allImages]
	}
	return words, ok
}

func setWords(of *map[string][]string, text string) error {
	name, line, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf(`want IMAGE=WORDS, such as nginx:1.27="nginx -g pid", got %q`, text)
	}
	words, err := split(line)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return put(of, name, words)
}

func put(of *map[string][]string, name string, words []string) error {
	if *of == nil {
		*of = map[string][]string{}
	}
	if _, twice := (*of)[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	(*of)[name] = words
	return nil
}

// split takes words with spaces between them, or a JSON array where a word has
// spaces itself.
func split(line string) ([]string, error) {
	if strings.HasPrefix(strings.TrimSpace(line), "[") {
		var words []string
		if err := json.Unmarshal([]byte(line), &words); err != nil {
			return nil, errors.New(`want words, or a JSON array of them such as ["sh","-c","date"]`)
		}
		return words, nil
	}
	return strings.Fields(line), nil
}

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

// knows reports whether the flags have programs for an image.
func (f *Flags) knows(name string) bool {
	_, ok := given(f.programs, name)
	return ok
}

// image returns an image as the flags define it, on top of base, which may be empty. The
// first program is its CMD unless there is one, or an ENTRYPOINT. The error has all
// that is not on this machine.
func (f *Flags) image(name string, base runtime.Image) (runtime.Image, error) {
	i := base
	i.Name = name
	words, ok := given(f.programs, name)
	var errs []error
	if ok {
		i.Programs, i.Files, i.Dirs = map[string]string{}, map[string]string{}, nil
		i.Env = append([]string{"PATH=" + own + ":" + runtime.DefaultPath}, i.Env...)
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

// place adds what a word stands for to the image. program is its path in the container
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

// hidden returns an error for programs that would lie in a directory of this machine,
// which is read-only and has none of that name.
func hidden(i runtime.Image) error {
	var errs []error
	for _, target := range slices.Sorted(maps.Keys(i.Programs)) {
		for dir := path.Dir(target); dir != "/"; dir = path.Dir(dir) {
			of := i.Files[dir]
			if of == "" {
				continue
			}
			if _, err := os.Stat(path.Join(of, strings.TrimPrefix(target, dir))); err != nil {
				errs = append(errs, fmt.Errorf("-image %s: %s: %s is a read-only directory of this machine; without "+
					"a path in the container the program comes first on PATH", i.Name, target, dir))
			}
		}
	}
	return errors.Join(errs...)
}

// find returns a file of this machine, and where it lies in a container by itself: a name on PATH
// wherever it is here, an absolute path there, another one in own.
func find(host string) (source string, places []string, err error) {
	switch {
	case !strings.Contains(host, "/"):
		found, err := exec.LookPath(host)
		if err != nil {
			return "", nil, fmt.Errorf("%s: no program of that name is on PATH; give its path, ./%s for one in this "+
				"directory", host, host)
		}
		places = []string{found}
		for _, dir := range filepath.SplitList(runtime.DefaultPath) {
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
