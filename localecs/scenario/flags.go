package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// All is the image name that stands for every image without one of its own.
const All = "*"

// Host among an image's programs is everything that this machine has installed.
const Host = "host"

// Flags are what the command line says of images. The zero Flags say nothing.
type Flags struct {
	// programs are by image, as they were given; so are the commands.
	programs, entrypoints, commands map[string][]string
}

// Set takes NAME=PROGRAM[,PROGRAM...]. A PROGRAM is Host, the name of one on PATH,
// or a path of this machine, a directory too; ":PATH" after it says where it is in
// the container.
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

// Names are the images that the flags name, but for All.
func (f *Flags) Names() []string {
	var names []string
	for _, of := range []map[string][]string{f.programs, f.entrypoints, f.commands} {
		for name := range of {
			if name != All {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// given is what a flag says of an image, or of all.
func given(of map[string][]string, image string) ([]string, bool) {
	words, ok := of[image]
	if !ok {
		words, ok = of[All]
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
