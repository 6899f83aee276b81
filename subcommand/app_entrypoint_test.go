package subcommand

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func wrapApp(t *testing.T, flags []string, command ...string) *testkit.Process {
	t.Helper()
	return consulECS(t, nil, append(append([]string{"app-entrypoint"}, flags...), command...)...)
}

func TestAppEntrypointUsage(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "true")
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"no arguments", nil, 1},
		{"bad delay", []string{"-shutdown-delay", "soon", "true"}, 1},
		{"negative delay", []string{"-shutdown-delay", "-1s", "true"}, 1},
		{"no time to stop in", []string{"-stop-timeout", "999ms", "true"}, 1},
		{"delay longer than the stop timeout", []string{"-shutdown-delay", "40s", "true"}, 0},
		{"delay without command", []string{"-shutdown-delay", "1s"}, 1},
		{"bad level", []string{"-log-level=LOUD", "true"}, 1},
		{"unknown stop signal", []string{"-stop-signal", "KILL", "true"}, 1},
		{"no such program", []string{"./no-such-program"}, 1},
		{"help before the command", []string{"--help"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exits(t, wrapApp(t, c.args), c.want)
		})
	}
}

func TestAppEntrypointChecksItsFlags(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "true")
	const warning = "-shutdown-delay does not fit into -stop-timeout"
	for name, c := range map[string]struct {
		flags []string
		want  string // no warning when empty
	}{
		"negative":                {[]string{"-shutdown-delay=-1s"}, "want auto, or a time of 0 or more"},
		"stop timeout too short":  {[]string{"-stop-timeout=1ms"}, "-stop-timeout 1ms: want at least 1s"},
		"beyond ECS's default":    {[]string{"-shutdown-delay=40s"}, warning},
		"as long as the default":  {[]string{"-shutdown-delay=30s"}, warning},
		"within the default":      {[]string{"-shutdown-delay=29s"}, ""},
		"within the stop timeout": {[]string{"-shutdown-delay=40s", "-stop-timeout=1m"}, ""},
		"beyond the stop timeout": {[]string{"-shutdown-delay=20s", "-stop-timeout=10s"}, warning},
		"unknown stop signal": {[]string{"-stop-signal=STOP"},
			`invalid value "STOP" for flag -stop-signal: want one of TERM, HUP, INT, QUIT, USR1, USR2, WINCH, with or without SIG`},
		"the default": {nil, ""},
		"automatic":   {[]string{"-shutdown-delay=auto", "-stop-timeout=1s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := testkit.SelfArgs("consul-ecs", slices.Concat([]string{"app-entrypoint"}, c.flags,
				[]string{"true"})...)
			output, _ := exec.Command(command[0], command[1:]...).CombinedOutput()
			got := string(output)
			if !strings.Contains(got, c.want) || (c.want == "" && strings.Contains(got, warning)) {
				t.Errorf("want %q in:\n%s", c.want, got)
			}
		})
	}
}

func TestFlagsAfterTheCommandAreTheCommands(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "echo")
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{echo, "hello", "--help"}, "hello --help"},
		{[]string{echo, "hello", "-h", "-v", "-version"}, "hello -h -v -version"},
		{[]string{"-shutdown-delay", "1s", echo, "-shutdown-delay", "2s"}, "-shutdown-delay 2s"},
		{[]string{"--", echo, "--", "-x"}, "-- -x"},
		{[]string{"echo", "found in PATH"}, "found in PATH"},
	} {
		p := wrapApp(t, c.args)
		if got := p.Line(); got != c.want {
			t.Errorf("%q printed %q, want %q", c.args, got, c.want)
		}
		exits(t, p, 0)
	}
}

func TestAppEntrypoint(t *testing.T) {
	t.Parallel()
	const term, intr, closeInput = syscall.SIGTERM, syscall.SIGINT, syscall.Signal(0)
	for _, c := range []struct {
		name  string
		flags []string
		sends []syscall.Signal
		code  int
	}{
		{"exit before TERM", nil, []syscall.Signal{closeInput}, 0},
		{"exit after TERM swallowed by -compat", []string{"-compat"}, []syscall.Signal{term, closeInput}, 0},
		{"exit during the delay", []string{"-shutdown-delay", "1h"}, []syscall.Signal{term, closeInput}, 0},
		{"TERM after the delay", []string{"-shutdown-delay", "50ms"}, []syscall.Signal{term}, 55},
		{"INT before TERM", []string{"-shutdown-delay", "1h"}, []syscall.Signal{intr}, 42},
		{"INT during the delay", []string{"-shutdown-delay", "1h"}, []syscall.Signal{term, intr}, 42},
		{"INT after TERM swallowed by -compat", []string{"-compat"}, []syscall.Signal{term, intr}, 42},
		{"the stop signal waits, TERM after it does not", []string{"-stop-signal", "INT", "-shutdown-delay", "1h"},
			[]syscall.Signal{intr, term}, 55},
		{"the stop signal after the delay", []string{"-stop-signal", "sigint", "-shutdown-delay", "50ms"},
			[]syscall.Signal{intr}, 42},
		{"TERM after the delay beside another stop signal", []string{"-stop-signal", "SIGWINCH", "-shutdown-delay",
			"50ms"}, []syscall.Signal{term}, 55},
		{"delay 0 delivers TERM", []string{"-shutdown-delay", "0s"}, []syscall.Signal{term}, 55},
		{"without a proxy TERM is delivered at once", nil, []syscall.Signal{term}, 55},
		{"the same with -compat and an automatic delay", []string{"-compat", "-shutdown-delay", "auto"},
			[]syscall.Signal{term}, 55},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := wrapApp(t, c.flags, worker()...)
			p.Expect("ready")
			for _, sig := range c.sends {
				if sig == closeInput {
					p.Stdin.Close()
				} else {
					p.Signal(sig)
				}
			}
			exits(t, p, c.code)
		})
	}
}

// TestAppEntrypointLogsAsBefore: with the logger's name, for the acceptance tests of
// hashicorp's Terraform modules.
func TestAppEntrypointLogsAsBefore(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	args := slices.Concat([]string{"app-entrypoint", "-shutdown-delay", "50ms"}, worker())
	p := testkit.StartProcess(t, testkit.ProcessOptions{Stderr: &log}, testkit.SelfArgs("consul-ecs", args...)...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	exits(t, p, 55)
	const want = " consul-ecs: received sigterm. waiting 50ms before terminating application.\n"
	if strings.Count(log.String(), want) != 1 {
		t.Errorf("want once %q in:\n%s", want, log.String())
	}
}

func TestAppEntrypointSecondTermDuringTheDelayIsForwarded(t *testing.T) {
	t.Parallel()
	p := wrapApp(t, []string{"-shutdown-delay", "1h"}, worker("deaf")...)
	p.Expect("ready")
	// Repeated, because a TERM that comes before the first is taken merges
	// with it.
	testkit.Eventually(t, "a second TERM gets through", func() bool {
		p.Signal(syscall.SIGTERM)
		line, _ := p.Try()
		return line == "got terminated"
	})
	p.Stdin.Close()
	exits(t, p, 0)
}

func TestDeathBySignalIs128PlusN(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	p := wrapApp(t, nil, "sh", "-c", "echo ready; exec sleep 600")
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	exits(t, p, 143)
}
