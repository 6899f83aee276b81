// Package cli is the edge of both binaries: flags and environment in, exit
// codes out.
//
// Flow: 1. Main picks the command by its first argument, and list.go answers
// any other line; 2. the command's own flag set parses the rest up to the first
// word that is not a flag; 3. Run gets an Invocation and returns an error; 4.
// Main writes that error once and turns it into an exit code.
//
// Owns: exit codes, help texts' layout, the root logger, signals to contexts.
// Never does: anything a command is about.
// Start reading at: Command and Main.
package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Command is one subcommand, as data.
type Command struct {
	// Synopsis is the line in the list of commands.
	Synopsis string
	// Usage follows "Usage: <program> ".
	Usage string
	// Help is the text between usage and flags, with environment and an
	// example.
	Help string
	// Flags declares the flags; nil when there are none.
	Flags func(*flag.FlagSet)
	// FlagsAnywhere allows flags after arguments, too, up to "--". It is for commands
	// that run no other program.
	FlagsAnywhere bool
	// Run does the work. Its error decides the exit code, see ExitCode.
	Run func(context.Context, *Invocation) error
}

// Invocation is one call of a command: everything it may take from the world.
type Invocation struct {
	// Line is the command's name and every word after it, for a program that
	// runs itself again.
	Line []string
	// Args are the words after the flags.
	Args   []string
	Getenv func(string) string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Log is where the command logs. It starts as a text logger at INFO;
	// UseLogger replaces it once the configuration is known.
	Log hclog.Logger

	identify func(text string) failure.ID
	// json is the form of the log.
	json bool
}

// failureID returns the ID of the failure that a text is about; empty for none.
func (inv *Invocation) failureID(text string) failure.ID {
	if inv.identify == nil {
		return ""
	}
	return inv.identify(text)
}

// UseLogger replaces Log. Level is any hclog level in any case; an unknown one
// is an error. The logger's name stays, and so does JSON once it is on.
func (inv *Invocation) UseLogger(level string, json bool) error {
	log, err := newLogger(inv.Log.Name(), level, json || inv.json, inv.Stderr)
	if err != nil {
		return err
	}
	inv.json = json || inv.json
	inv.Log = &records{log, inv.failureID}
	return nil
}

// newLogger makes a root logger. The empty level is INFO.
func newLogger(name, level string, json bool, w io.Writer) (hclog.Logger, error) {
	l := hclog.LevelFromString(cmp.Or(level, "INFO"))
	if l == hclog.NoLevel {
		return nil, exit.Usagef("log level %q: want TRACE, DEBUG, INFO, WARN or ERROR", level)
	}
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: l, JSONFormat: json, Output: w}), nil
}

// App is a binary.
type App struct {
	Name, Version string
	Commands      map[string]Command
	// Identify returns the ID of the failure that a record or an error is about, empty for none; nil has no IDs.
	Identify func(text string) failure.ID
}

// ExitCode maps an error to the exit code: nil 0, exit.CodeError its own, usage 1,
// refused or permanent 2, anything else 3.
func ExitCode(err error) int {
	var code *exit.CodeError
	var usage *exit.UsageError
	var refused *exit.RefusedError
	var permanent *retry.PermanentError
	switch {
	case err == nil:
		return exit.CodeOK
	case errors.As(err, &code):
		return code.Code
	case errors.As(err, &usage):
		return exit.CodeUsage
	case errors.As(err, &refused), errors.As(err, &permanent):
		return exit.CodeRefused
	default:
		return exit.CodeUnknown
	}
}

// SignalContext returns a context that ends, with a *exit.SignalError as its cause,
// when one of the signals arrives. stop releases the signals.
func SignalContext(parent context.Context, signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, signals...)
	go func() {
		select {
		case s := <-ch:
			cancel(&exit.SignalError{Signal: s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(context.Canceled)
	}
}

// Main runs the command that args names (without the program's name) and
// returns the exit code. env is the process environment's lookup.
func Main(app App, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	inv := &Invocation{Getenv: getenv, Stdin: stdin, Stdout: stdout, Stderr: stderr, identify: app.Identify}
	if len(args) > 0 {
		if cmd, ok := app.Commands[args[0]]; ok {
			return (&entry{app.Name, args[0], cmd, inv}).Run(args[1:])
		}
	}
	return list(app, parseLine(args), inv)
}

// entry is a command in the form of mitchellh/cli.
type entry struct {
	program, name string
	cmd           Command
	inv           *Invocation
}

// Synopsis returns the line in the list of commands.
func (e *entry) Synopsis() string { return e.cmd.Synopsis }

// Help returns usage, help and flags.
func (e *entry) Help() string { return helpText(e.program, e.cmd, e.cmd.FlagSet(e.name)) }

// FlagSet returns a new set of the command's flags.
func (c Command) FlagSet(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if c.Flags != nil {
		c.Flags(fs)
	}
	return fs
}

// Run parses the flags, runs the command and returns the exit code.
func (e *entry) Run(args []string) int {
	inv, fs := e.inv, e.cmd.FlagSet(e.name)
	inv.json, _ = strconv.ParseBool(inv.Getenv(config.LogJSONEnvVar))
	log, _ := newLogger(e.program+"."+e.name, "", inv.json, inv.Stderr)
	inv.Log = &records{log, inv.failureID}
	words, err := e.parse(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(inv.Stdout, helpText(e.program, e.cmd, fs))
		return exit.CodeOK
	case err != nil && inv.json:
		inv.Log.Error("command failed", logkey.Error, guess(err, fs), logkey.ExitCode, exit.CodeUsage)
		return exit.CodeUsage
	case err != nil:
		// Not the whole help: the mistake would scroll away.
		fmt.Fprintf(inv.Stderr, "%s %s: %v\n%s %s --help lists the flags\n", e.program, e.name,
			guess(err, fs), e.program, e.name)
		return exit.CodeUsage
	}
	inv.Line, inv.Args = append([]string{e.name}, args...), words
	err = e.cmd.Run(context.Background(), inv)
	var code *exit.CodeError
	var usage *exit.UsageError
	var plain *exit.Plain
	switch {
	case err == nil, errors.As(err, &code):
	case !inv.json && errors.As(err, &usage), errors.As(err, &plain):
		text := err.Error()
		fmt.Fprintf(inv.Stderr, "%s %s: %s\n", e.program, e.name, failure.Append(text, inv.failureID(text)))
	default:
		inv.Log.Error("command failed", logkey.Error, err, logkey.ExitCode, ExitCode(err))
	}
	return ExitCode(err)
}

// parse parses the flags and returns the arguments. Where a line of a wrapped program
// may follow, flags end at the first word that is none: a -h in it is that program's.
func (e *entry) parse(fs *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		ended := len(rest) < len(args) && args[len(args)-len(rest)-1] == "--"
		if len(rest) == 0 || ended || !e.cmd.FlagsAnywhere {
			return append(words, rest...), nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// guess adds to an error about an unknown flag what replaces it, or which one was
// perhaps meant.
func guess(err error, fs *flag.FlagSet) error {
	unknown, is := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if near := config.Nearest(unknown, known); is && near != "" {
		return fmt.Errorf("%w; did you mean -%s?", err, near)
	}
	return err
}

// NoArgs refuses positional arguments.
func NoArgs(inv *Invocation) error {
	if len(inv.Args) > 0 {
		return exit.Usagef("unexpected argument %q: this command takes flags only", inv.Args[0])
	}
	return nil
}

func helpText(program string, cmd Command, fs *flag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s\n\n%s\n", program, cmd.Usage, strings.TrimSpace(cmd.Help))
	hasFlags := false
	fs.VisitAll(func(*flag.Flag) { hasFlags = true })
	if hasFlags {
		b.WriteString("\nFlags:\n")
		fs.SetOutput(&b)
		fs.PrintDefaults()
		fs.SetOutput(io.Discard)
	}
	return b.String()
}
