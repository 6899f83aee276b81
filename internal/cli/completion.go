package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// name is the command's.
const name = "completion"

// With is the app with a command that completes it.
func With(app App) App {
	commands := maps.Clone(app.Commands)
	app.Commands = commands
	commands[name] = Command{
		Synopsis: "Print the script by which a shell completes commands and flags",
		Usage:    name + " bash|zsh|fish",
		Help: fmt.Sprintf(`
Prints a script for the shell, which asks %[1]s itself at each Tab.

Examples:
  $ source <(%[1]s completion bash)     # in ~/.bashrc
  $ source <(%[1]s completion zsh)      # in ~/.zshrc, after compinit
  $ %[1]s completion fish | source      # in ~/.config/fish/config.fish`, app.Name),
		Complete: func(_ string, args []string) []string {
			if len(args) > 0 {
				return []string{}
			}
			return shells()
		},
		Run: func(_ context.Context, inv *Invocation) error { return runCompletion(app, inv) },
	}
	return app
}

// Values is a command's Complete of flags that have few values, by name. All else is
// names of files.
func Values(of map[string][]string) func(flag string, args []string) []string {
	return func(flag string, _ []string) []string { return of[flag] }
}

// Verbs is the Complete of a command whose first argument is one of a few words.
func Verbs(words ...string) func(flag string, args []string) []string {
	return func(flag string, args []string) []string {
		if flag != "" || len(args) > 0 {
			return nil
		}
		return words
	}
}

func runCompletion(app App, inv *Invocation) error {
	if len(inv.Args) > 0 && inv.Args[0] == "words" { // what the scripts ask
		words, files := Words(app, inv.Args[1:])
		for _, w := range words {
			fmt.Fprintf(inv.Stdout, "%s\t%s\n", w.Text, w.Means)
		}
		if files {
			fmt.Fprintln(inv.Stdout, filesToo)
		}
		return nil
	}
	if len(inv.Args) != 1 || !slices.Contains(shells(), inv.Args[0]) {
		return Usagef("want one of %s", strings.Join(shells(), ", "))
	}
	_, err := fmt.Fprint(inv.Stdout, script(inv.Args[0], app.Name))
	return err
}

// Word is one that may stand at the cursor.
type Word struct {
	// Means is for people; it may be empty.
	Text, Means string
}

// Words are those that may stand in the place of the last of words, which is what
// was typed of it. The program's own name is not among words. files says that names
// of files may stand there, too.
func Words(app App, words []string) (found []Word, files bool) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	if len(words) == 1 {
		for _, command := range slices.Sorted(maps.Keys(app.Commands)) {
			found = append(found, Word{command, app.Commands[command].Synopsis})
		}
		found = append(found, Word{"--help", "list the commands"}, Word{"--version", "print the version"})
		return beginning(found, last), false
	}
	command, known := app.Commands[words[0]]
	if !known {
		return nil, false
	}
	fs := flag.NewFlagSet(words[0], flag.ContinueOnError)
	if command.Flags != nil {
		command.Flags(fs)
	}
	p := place(fs, words[1:], command.FlagsAnywhere)
	switch {
	case p.flags:
		return beginning(flagWords(fs), last), false
	case last == "=" && p.flag != "": // bash takes it for a word
		last = ""
	}
	var values []string
	if command.Complete != nil {
		values = command.Complete(p.flag, p.args)
	}
	for _, v := range values {
		found = append(found, Word{Text: v})
	}
	return beginning(found, last), values == nil
}

// spot is where the cursor stands.
type spot struct {
	// flags says that a flag may stand there, and has been begun.
	flags bool
	// flag is the one whose value stands there; empty when it is an argument.
	flag string
	args []string // before it
}

// place reads the words as package flag does: flags end at the first word that is
// none, unless they may be anywhere. Words of bash have "=" by itself.
func place(fs *flag.FlagSet, words []string, anywhere bool) (s spot) {
	before, last := words[:len(words)-1], words[len(words)-1]
	for i := 0; i < len(before); i++ {
		word := before[i]
		switch {
		case word == "--":
			return spot{args: append(s.args, before[i+1:]...)}
		case strings.HasPrefix(word, "-") && word != "-":
		case anywhere:
			s.args = append(s.args, word)
			continue
		default:
			return spot{args: before[i:]}
		}
		f := fs.Lookup(strings.TrimLeft(word, "-"))
		switch {
		case i+1 < len(before) && before[i+1] == "=":
			if i += 2; i == len(before) {
				return spot{flag: nameOf(f), args: s.args}
			}
			set(f, before[i])
		case last == "=" && i == len(before)-1:
			return spot{flag: nameOf(f), args: s.args}
		case f != nil && !isBool(f):
			if i++; i == len(before) {
				return spot{flag: f.Name, args: s.args}
			}
			set(f, before[i])
		}
	}
	return spot{flags: strings.HasPrefix(last, "-"), args: s.args}
}

// set has the command see a flag's value when it is asked what may follow. What is
// wrong with one is not for now.
func set(f *flag.Flag, value string) {
	if f != nil {
		_ = f.Value.Set(value)
	}
}

func nameOf(f *flag.Flag) string {
	if f == nil {
		return ""
	}
	return f.Name
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// flagWords are a command's flags.
func flagWords(fs *flag.FlagSet) (found []Word) {
	fs.VisitAll(func(f *flag.Flag) {
		_, usage := flag.UnquoteUsage(f)
		found = append(found, Word{"-" + f.Name, oneLine(usage)})
	})
	return append(found, Word{"-help", "say all about the command"})
}

// oneLine is the first clause of a text.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "; ")
	return strings.ReplaceAll(text, "\t", " ")
}

// beginning are the words that begin so. A flag may be typed with two dashes.
func beginning(words []Word, with string) []Word {
	double := strings.HasPrefix(with, "--")
	var found []Word
	for _, w := range words {
		if double && strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") {
			w.Text = "-" + w.Text
		}
		if strings.HasPrefix(w.Text, with) {
			found = append(found, w)
		}
	}
	return found
}
