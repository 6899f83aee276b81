package command

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// parsed returns the flags of a command line.
func parsed(t *testing.T, args ...string) (*definitionFlags, error) {
	t.Helper()
	var f definitionFlags
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	f.Add(fs)
	return &f, fs.Parse(args)
}

const definition = `{"family": "job", "networkMode": "awsvpc", "executionRoleArn": "arn:aws:iam::123456789012:role/execution", "containerDefinitions": [{"name": "job", "image": "job:1", "memory": 64,
	"secrets": [{"name": "KEY", "valueFrom": "/key"}], "environmentFiles": [{"type": "s3", "value": "arn:aws:s3:::b/a.env"}]}]}`

// files writes some and returns their directory.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestArgumentsAreDefinitionsOrScenarios(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"a.json": definition, "b.json": definition, "scenario.yaml": "name: x\n"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	for name, c := range map[string]struct {
		flags, args, only []string
		want              int
		err               string
	}{
		"definitions":        {nil, in("a.json", "b.json"), nil, 2, ""},
		"a scenario":         {nil, in("scenario.yaml"), []string{"-chaos"}, 0, ""},
		"its directory":      {nil, []string{dir}, nil, 0, ""},
		"nothing":            {nil, nil, nil, 0, ""},
		"both":               {nil, in("scenario.yaml", "a.json"), nil, 0, "DIR/a.json is a task definition and other arguments are not: run scenarios separately"},
		"flags of scenarios": {nil, in("a.json"), []string{"-chaos", "-seed"}, 0, "-chaos, -seed: for scenarios only"},
		"flags of definitions": {[]string{"-image", "a=sh"}, in("scenario.yaml"), nil, 0,
			"-image, -entrypoint, -cmd, -secret, -environment-file and -images are for task definitions, which DIR/scenario.yaml is not: set them in the scenario's file"},
		"flags and their directory": {[]string{"-image", "a=sh"}, []string{dir}, nil, 0,
			"-image, -entrypoint, -cmd, -secret, -environment-file and -images are for task definitions, which DIR is not: set them in the scenario's file; its task definitions run with: localecs run DIR/a.json DIR/b.json"},
		"a pipe":      {[]string{"-image", "a=sh"}, in("pipe"), nil, 0, "DIR/pipe is a pipe: task definitions are read more than once, so write it to a file"},
		"flags alone": {[]string{"-image", "a=sh"}, nil, nil, 0, ""},
	} {
		f, err := parsed(t, c.flags...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Definitions(c.args, c.only)
		if len(got) != c.want || (err == nil) != (c.err == "") || err != nil && strings.ReplaceAll(err.Error(), dir, "DIR") != c.err {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestFlagsReachThePlan(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	dir := files(t, map[string]string{"a.json": definition, "env": "A=1\n", "setting.yaml": "region: eu-west-3\n"})
	f, err := parsed(t, "-image", "job:1=sh", "-cmd", "job:1=sh -c true", "-secret", "/key=a=b", "-environment-file", "arn:aws:s3:::b/a.env="+filepath.Join(dir, "env"), "-images", filepath.Join(dir, "setting.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, warnings, err := scenario.PrepareDefinitions([]string{filepath.Join(dir, "a.json")}, f.sources)
	if err != nil || len(warnings) > 0 || p.Name() != "job" {
		t.Errorf("got %v, %q, %v", p, warnings, err)
	}
	for _, args := range [][]string{{"-secret", "x"}, {"-environment-file", "=x"}, {"-image", "x"}} {
		if _, err := parsed(t, args...); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestDirectoriesOfDefinitionsGetAHint(t *testing.T) {
	t.Parallel()
	fault := errors.New("there is no scenario.yaml in DIR")
	dir := files(t, map[string]string{"a.json": definition, "b.json": definition, "package.json": "{}"})
	got := hint(dir, fault)
	want := "there is no scenario.yaml in DIR; its task definitions run with: localecs run DIR/a.json DIR/b.json"
	if !errors.Is(got, fault) || strings.ReplaceAll(got.Error(), dir, "DIR") != want {
		t.Errorf("got %v", got)
	}
	if got := hint(t.TempDir(), fault); got != fault {
		t.Errorf("got %v", got)
	}
	if got := hint(dir, nil); got != nil {
		t.Errorf("got %v", got)
	}
}

// Signals that come together are one: timeout(1) sends two.
func TestSimultaneousSignalsCountAsOne(t *testing.T) {
	called := make(chan struct{})
	ctx, stop, release := twice(t.Context(), func() { close(called) }, syscall.SIGUSR1)
	defer release()
	send := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-called
	<-stop
	if ctx.Err() != nil {
		t.Fatal("the first signal has ended the run")
	}
	for ctx.Err() == nil { // those of the first half second count for nothing
		send()
	}
	var s *exit.SignalError
	if !errors.As(context.Cause(ctx), &s) || s.Signal != syscall.SIGUSR1 {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}
