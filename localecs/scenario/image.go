package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Flags are the images that the command line defines. The zero value defines none.
type Flags struct {
	// programs are by image, as they were given; so are the commands.
	programs, entrypoints, commands map[string][]string
}

// Set takes NAME=PROGRAM[,PROGRAM...]. A PROGRAM is file.Host, the name of one on PATH,
// or a path of this machine, a directory too; ":PATH" after it is its path in the
// container.
func (f *Flags) Set(text string) error {
	name, list, ok := strings.Cut(text, "=")
	programs := strings.Split(list, ",")
	switch {
	case !ok || name == "":
		return fmt.Errorf("want IMAGE=PROGRAM[,PROGRAM...], such as %s=%s, got %q", "nginx:1.27", file.Host, text)
	}
	if err := file.CheckWords(programs); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return put(&f.programs, name, programs)
}

// SetEntrypoint takes NAME=WORDS, the image's ENTRYPOINT.
func (f *Flags) SetEntrypoint(text string) error { return setWords(&f.entrypoints, text) }

// SetCommand takes NAME=WORDS, the image's CMD.
func (f *Flags) SetCommand(text string) error { return setWords(&f.commands, text) }

// names returns the images that the flags name, but for runtime.AllImages.
func (f *Flags) names() []string {
	var names []string
	for _, of := range []map[string][]string{f.programs, f.entrypoints, f.commands} {
		for name := range of {
			if name != runtime.AllImages {
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
		words, ok = of[runtime.AllImages]
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

// knows reports whether the flags have programs for an image.
func (f *Flags) knows(name string) bool {
	_, ok := given(f.programs, name)
	return ok
}

// image returns an image as the flags define it, on top of base; nil if neither defines it.
func (f *Flags) image(name string, base *file.Image) *file.Image {
	programs, ok := given(f.programs, name)
	entrypoint, hasEntrypoint := given(f.entrypoints, name)
	cmd, hasCmd := given(f.commands, name)
	if base == nil && !ok && !hasEntrypoint && !hasCmd {
		return nil
	}
	i := *cmp.Or(base, &file.Image{})
	if ok {
		i.Programs, i.Files = file.Programs{Words: programs, Flag: true}, nil
	}
	if hasEntrypoint {
		i.Entrypoint = entrypoint
	}
	if hasCmd {
		i.Cmd = cmd
	}
	return &i
}
