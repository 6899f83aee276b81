package cli

import (
	"fmt"
	"maps"
	"slices"

	mcli "github.com/mitchellh/cli"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// line is what stands on a command line that does not begin with a command.
type line struct {
	help, version bool
	// command is the first word that is not a flag.
	command string
}

// parseLine reads the line as mitchellh/cli does: help counts anywhere before
// a --, version only before the command, and empty words not at all. Its own
// parser is not used because CLI links text/template, whose calls of methods
// by name keep every exported method of every package in the binary: 4 MB.
func parseLine(args []string) line {
	var l line
	for _, arg := range args {
		switch arg {
		case "--":
			return l
		case "-h", "-help", "--help":
			l.help = true
		case "-v", "-version", "--version":
			l.version = l.version || l.command == ""
		default:
			if l.command == "" && arg != "" && arg[0] != '-' {
				l.command = arg
			}
		}
	}
	return l
}

// list answers everything that is not a command: help, version, typing errors.
func list(app App, l line, inv *Invocation) int {
	commands := map[string]mcli.CommandFactory{}
	for name, cmd := range app.Commands {
		commands[name] = func() (mcli.Command, error) { return &entry{app.Name, name, cmd, inv}, nil }
	}
	all := func() string {
		return mcli.BasicHelpFunc(app.Name)(commands) + "\n" + app.Name + " <command> --help describes it.\n"
	}
	cmd, known := app.Commands[l.command]
	one := &entry{app.Name, l.command, cmd, inv}
	switch {
	case l.version:
		fmt.Fprintln(inv.Stderr, app.Version) // as in 0.6; the version command writes to stdout
		return exit.CodeOK
	case l.help && l.command == "":
		fmt.Fprint(inv.Stdout, all())
		return exit.CodeOK
	case l.help && known:
		fmt.Fprint(inv.Stdout, one.Help())
		return exit.CodeOK
	case known:
		fmt.Fprintf(inv.Stderr, "%s: the command comes first: %s, then its flags\n\n%s", app.Name,
			l.command, one.Help())
		return exit.CodeUsage
	default:
		fmt.Fprint(inv.Stderr, all())
		if l.command != "" { // last, since the list is long
			fmt.Fprintf(inv.Stderr, "\n%s: there is no command %q%s\n", app.Name, l.command, suggest(l.command, app))
		}
		return exit.CodeNoSuch
	}
}

// suggest asks whether another command was meant.
func suggest(word string, app App) string {
	if near := config.Nearest(word, slices.Sorted(maps.Keys(app.Commands))); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
