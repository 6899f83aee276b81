package admission

import (
	"errors"
	"flag"
	"fmt"
	"path"
	"slices"
)

// checkFlags finds flags with which a command of consul-ecs in a container's line would end at
// once. Such a command may run another.
func checkFlags(t *task) {
	for i, c := range t.doc.Definition.ContainerDefinitions {
		line, next := slices.Concat(c.EntryPoint, c.Command), 0
		for next+1 < len(line) && path.Base(line[next]) == "consul-ecs" {
			command := line[next+1]
			flags := t.containers.flags(command)
			if flags == nil {
				break
			}
			err := flags.Parse(line[next+2:])
			next = len(line) - flags.NArg()
			switch {
			case err == nil:
				continue
			case errors.Is(err, flag.ErrHelp):
				err = errors.New("it prints its help and exits")
			}
			if !isComputedLine(t.doc, i, next) {
				t.doc.report(codeFlag, wordPath(t.doc, i, next-1), "container", t.doc.containerName(i), "command",
					command, "message", err)
			}
			break
		}
	}
}

// wordPath returns the path of a word of a container's line: in entryPoint, or in command behind it.
func wordPath(d *document, i, word int) string {
	member, before := "entryPoint", len(d.Definition.ContainerDefinitions[i].EntryPoint)
	if word >= before {
		member, word = "command", word-before
	}
	return fmt.Sprintf("$.containerDefinitions[%d].%s[%d]", i, member, word)
}

// isComputedLine reports whether one of the first words of a container's line is known at
// deployment only, or what follows the whole line.
func isComputedLine(d *document, i, words int) bool {
	c := d.Definition.ContainerDefinitions[i]
	if words == len(c.EntryPoint)+len(c.Command) {
		words++
	}
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	paths := []string{at + ".entryPoint"}
	if words > len(c.EntryPoint) {
		paths = append(paths, at+".command")
	}
	for word := range words {
		paths = append(paths, wordPath(d, i, word))
	}
	return slices.ContainsFunc(paths, d.IsUnknown)
}
