package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// call is one run of Main.
type call struct {
	code           int
	stdout, stderr string
}

func run(app App, args ...string) call {
	var out, err bytes.Buffer
	code := Main(app, args, func(string) string { return "" }, strings.NewReader(""), &out, &err)
	return call{code, out.String(), err.String()}
}

// echo returns an app with one command that prints its arguments and one flag.
func echo(err error) App {
	upper := false
	return App{Name: "prog", Version: "v1.2.3", Commands: map[string]Command{"echo": {
		Synopsis: "Print the arguments",
		Usage:    "echo [flags] [words]",
		Help:     "Prints its arguments.",
		Flags:    func(fs *flag.FlagSet) { fs.BoolVar(&upper, "upper", false, "in capitals") },
		Run: func(_ context.Context, inv *Invocation) error {
			s := strings.Join(inv.Args, " ")
			if upper {
				s = strings.ToUpper(s)
			}
			fmt.Fprintln(inv.Stdout, s)
			return err
		},
	}}}
}

// The CLI quirk of 1.0: help anywhere on the line was taken for ours.
func TestHelpFlagAfterTheCommandIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"echo", "hello", "--help"},
		{"echo", "hello", "-h"},
		{"echo", "-upper=false", "hello", "-help"},
	} {
		got := run(echo(nil), args...)
		if got.code != 0 || !strings.HasPrefix(got.stdout, "hello -") {
			t.Errorf("%v: got %+v, want the arguments printed", args, got)
		}
	}
}

// As with docker, whose users write "stop web -t 5".
func TestFlagsAnywhere(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]call{
		"echo -upper a b":           {stdout: "A B\n"},
		"echo a -upper b":           {stdout: "A B\n"},
		"echo a b --upper=true":     {stdout: "A B\n"},
		"echo a -- -upper":          {stdout: "a -upper\n"},
		"echo -- a -upper":          {stdout: "a -upper\n"},
		"echo a - -upper -- b -- c": {stdout: "A - B -- C\n"},
		"echo a -uper": {
			code: 1, stderr: "prog echo: flag provided but not defined: -uper; did you mean -upper?\n" +
				"prog echo --help lists the flags\n",
		},
	} {
		app := echo(nil)
		command := app.Commands["echo"]
		command.FlagsAnywhere = true
		app.Commands["echo"] = command
		if got := run(app, strings.Fields(line)...); got != want {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"echo", "--help"}, {"echo", "-h"}, {"echo", "-upper", "-help"}} {
		got := run(echo(nil), args...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%v: got %+v, want exit 0 and no stderr", args, got)
		}
		for _, want := range []string{"Usage: prog echo [flags] [words]", "-upper"} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%v: got %+v, want %q on stdout", args, got, want)
			}
		}
	}
	got := run(echo(nil), "--help")
	if got.code != 0 || !strings.Contains(got.stdout, "echo    Print the arguments") {
		t.Errorf("got %+v, want the list of commands", got)
	}
}

func TestCommandLineMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 127, "Available commands are:"},
		{[]string{"nosuch"}, 127, "Available commands are:"},
		{[]string{"nosuch"}, 127, "\nprog: there is no command \"nosuch\"\n"},
		{[]string{"ecko"}, 127, "\nprog: there is no command \"ecko\"; did you mean echo?\n"},
		{
			[]string{"echo", "-nosuch"}, 1,
			"prog echo: flag provided but not defined: -nosuch\nprog echo --help lists the flags\n",
		},
		{
			[]string{"echo", "-uper"}, 1,
			"prog echo: flag provided but not defined: -uper; did you mean -upper?\nprog echo --help lists the flags\n",
		},
		{
			[]string{"echo", "-upper=x"}, 1,
			"prog echo: invalid boolean value \"x\" for -upper: parse error\nprog echo --help lists the flags\n",
		},
		{[]string{"-nosuch", "echo"}, 1, ""},
	} {
		got := run(echo(nil), c.args...)
		if got.code != c.code || got.stdout != "" {
			t.Errorf("%v: got %+v, want exit %d and no stdout", c.args, got, c.code)
		}
		if !strings.Contains(got.stderr, c.says) {
			t.Errorf("%v: got %+v, want %q on stderr", c.args, got, c.says)
		}
	}
}

// What mitchellh/cli made of a line that does not begin with a command.
func TestLinesWithoutALeadingCommand(t *testing.T) {
	t.Parallel()
	const all, one = "Available commands are:", "Usage: prog echo [flags] [words]"
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"-h", "echo"}, 0, one, ""},
		{[]string{"-nosuch", "echo", "--help"}, 0, one, ""},
		{[]string{"-nosuch", "-h"}, 0, all, ""},
		{[]string{"-nosuch"}, 127, "", all},
		{[]string{""}, 127, "", all},
		{[]string{"", "echo"}, 1, "", one},
		{[]string{"--", "echo"}, 127, "", all},
		{[]string{"--", "-h"}, 127, "", all},
		{[]string{"nosuch", "-h"}, 127, "", all},
		{[]string{"nosuch", "-v"}, 127, "", all},
		{[]string{"-v", "nosuch"}, 0, "", "v1.2.3"},
		{[]string{"-h", "-v"}, 0, "", "v1.2.3"},
		{[]string{"-nosuch", "echo", "-v"}, 1, "", one},
	} {
		got := run(echo(nil), c.args...)
		if got.code != c.code {
			t.Errorf("%q: exit %d, want %d", c.args, got.code, c.code)
		}
		if !says(got.stdout, c.stdout) || !says(got.stderr, c.stderr) {
			t.Errorf("%q: got %+v, want stdout %q, stderr %q", c.args, got, c.stdout, c.stderr)
		}
	}
}

// says reports whether an output contains want, and whether it is empty if want is.
func says(output, want string) bool {
	return strings.Contains(output, want) && (output == "") == (want == "")
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--version", "-version", "-v"} {
		if got := run(echo(nil), flag); got.code != 0 || got.stderr != "v1.2.3\n" {
			t.Errorf("%s: got %+v, want v1.2.3 on stderr", flag, got)
		}
	}
}

func TestErrorsBecomeExitCodes(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for _, c := range []struct {
		name string
		err  error
		code int
		says string
	}{
		{"nothing", nil, 0, ""},
		{"usage", exit.Usagef("flag x: %w", fault), 1, "prog echo: flag x: fault\n"},
		{"wrapped usage", fmt.Errorf("config: %w", exit.Usagef("bad")), 1, "prog echo: config: bad\n"},
		{
			"permanent", fmt.Errorf("log in: %w", &retry.PermanentError{Err: fault}), 2,
			"[ERROR] prog.echo: command failed: error=\"log in: fault\" exit_code=2",
		},
		{"refused", &exit.RefusedError{Err: fault}, 2, "error=fault"},
		{"gave up", &retry.GaveUpError{Attempts: 3, Err: fault}, 3, "gave up after 3 attempts"},
		{"anything else", fault, 3, "error=fault"},
		{"anything else, for a terminal", fmt.Errorf("run: %w", &exit.Plain{Err: fault}), 3, "prog echo: run: fault\n"},
		{"a refusal, for a terminal", &exit.Plain{Err: &exit.RefusedError{Err: fault}}, 2, "prog echo: fault\n"},
		{"a child's code", &exit.CodeError{Code: 42}, 42, ""},
	} {
		got := run(echo(c.err), "echo")
		if got.code != c.code || !says(got.stderr, c.says) {
			t.Errorf("%s: got %+v, want exit %d and %q", c.name, got, c.code, c.says)
		}
	}
}

func TestNewLoggerRejectsUnknownLevels(t *testing.T) {
	t.Parallel()
	for level, ok := range map[string]bool{"": true, "info": true, "DEBUG": true, "Warn": true, "loud": false} {
		if _, err := newLogger("x", level, false, os.Stderr); (err == nil) != ok {
			t.Errorf("level %q: got %v, want ok %t", level, err, ok)
		}
	}
}

func TestEmptyLevelIsInfo(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]hclog.Level{
		"": hclog.Info, "INFO": hclog.Info, "warn": hclog.Warn, "TRACE": hclog.Trace,
	} {
		log, err := newLogger("x", level, false, io.Discard)
		if err != nil || log.GetLevel() != want {
			t.Errorf("level %q: got %v, %v, want %v", level, log, err, want)
		}
	}
}

func TestSignalContextNamesTheSignal(t *testing.T) {
	ctx, stop := SignalContext(t.Context(), syscall.SIGUSR1)
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	var s *exit.SignalError
	if cause := context.Cause(ctx); !errors.As(cause, &s) || s.Signal != syscall.SIGUSR1 {
		t.Errorf("cause %v, want SIGUSR1", cause)
	}
}
