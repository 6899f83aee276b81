package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// flagsOf returns what flags of these names and values say.
func flagsOf(t *testing.T, flags ...[2]string) *Flags {
	t.Helper()
	f := &Flags{}
	set := map[string]func(string) error{"-image": f.Set, "-entrypoint": f.SetEntrypoint, "-cmd": f.SetCommand}
	for _, flag := range flags {
		if err := set[flag[0]](flag[1]); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// made returns image i as the flags make it on top of base.
func made(f *Flags, base file.Image) (runtime.Image, error) {
	image, errs := f.image("i", &base).Host("i", "", nil, &runtime.Resolver{})
	return image, errors.Join(errs...)
}

func TestFlagsReportMistakes(t *testing.T) {
	t.Parallel()
	f := flagsOf(t, [2]string{"-image", "twice=sh"})
	for _, c := range []struct {
		set        func(string) error
		text, want string
	}{
		{f.Set, "nginx:1.27", `want IMAGE=PROGRAM[,PROGRAM...], such as nginx:1.27=host, got "nginx:1.27"`},
		{f.Set, "=sh", `want IMAGE=PROGRAM[,PROGRAM...], such as nginx:1.27=host, got "=sh"`},
		{f.Set, "a=", "a: a program is missing; host stands for all that this machine has installed"},
		{f.Set, "a=sh,,ls", "a: a program is missing; host stands for all that this machine has installed"},
		{f.Set, "twice=ls", "twice is given twice"},
		{f.SetCommand, "a", `want IMAGE=WORDS, such as nginx:1.27="nginx -g pid", got "a"`},
		{f.SetCommand, `a=["sh", 1]`, `a: want words, or a JSON array of them such as ["sh","-c","date"]`},
	} {
		if err := c.set(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestImagesFollowFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := filepath.Join(dir, "server")
	if err := os.WriteFile(server, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := "PATH=/localecs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	base := file.Image{Entrypoint: []string{"/base"}, Cmd: []string{"base"}, Env: []string{"A=1"}, User: "5"}
	asBase := runtime.Image{Entrypoint: []string{"/base"}, Cmd: []string{"base"}, Env: []string{"A=1"}, User: "5"}
	for name, c := range map[string]struct {
		flags [][2]string
		base  file.Image
		want  runtime.Image
	}{
		"an absolute path": {[][2]string{{"-image", "i=" + server}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Cmd: []string{server}, Env: []string{path}}},
		"a place": {[][2]string{{"-image", "i=" + server + ":/bin/nginx"}}, file.Image{},
			runtime.Image{Programs: map[string]string{"/bin/nginx": server}, Cmd: []string{"/bin/nginx"},
				Env: []string{path}}},
		"a directory": {[][2]string{{"-image", "i=" + server + "," + dir + ":/data"}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Files: map[string]string{"/data": dir},
				Cmd: []string{server}, Env: []string{path}}},
		"for all": {[][2]string{{"-image", "*=" + server}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Cmd: []string{server}, Env: []string{path}}},
		"its own wins": {[][2]string{{"-image", "*=nosuch"}, {"-image", "i=" + server}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Cmd: []string{server}, Env: []string{path}}},
		"a command": {[][2]string{{"-image", "i=" + server}, {"-cmd", "i=x -y  z"}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Cmd: []string{"x", "-y", "z"},
				Env: []string{path}}},
		"words with spaces": {[][2]string{{"-image", "i=" + server}, {"-cmd", `i=["sh","-c","a b"]`}},
			file.Image{}, runtime.Image{Programs: map[string]string{server: server},
				Cmd: []string{"sh", "-c", "a b"}, Env: []string{path}}},
		"an entrypoint": {[][2]string{{"-image", "i=" + server}, {"-entrypoint", "i=tini --"}}, file.Image{},
			runtime.Image{Programs: map[string]string{server: server}, Entrypoint: []string{"tini", "--"},
				Env: []string{path}}},
		"an entrypoint, a cmd": {[][2]string{{"-image", "i=" + server}, {"-entrypoint", "i=tini"}, {"-cmd", "i=x"}},
			file.Image{}, runtime.Image{Programs: map[string]string{server: server}, Entrypoint: []string{"tini"},
				Cmd: []string{"x"}, Env: []string{path}}},
		"on top of the file": {[][2]string{{"-image", "i=" + server}}, base,
			runtime.Image{Programs: map[string]string{server: server}, Entrypoint: []string{"/base"},
				Cmd: []string{"base"}, Env: []string{path, "A=1"}, User: "5"}},
		"nothing":       {nil, base, asBase},
		"another image": {[][2]string{{"-image", "j=" + server}}, base, asBase},
	} {
		got, err := made(flagsOf(t, c.flags...), c.base)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.want.Name = "i"
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A name on PATH is in a container wherever it is on this machine: definitions call
// sh by any of its names.
func TestProgramIsAtEachOfItsPaths(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	got, err := made(flagsOf(t, [2]string{"-image", "i=sh"}), file.Image{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/bin/sh", "/usr/bin/sh"} {
		if _, err := os.Stat(p); err == nil && got.Programs[p] == "" {
			t.Errorf("%s is not in the image: %v", p, got.Programs)
		}
	}
	if len(got.Cmd) != 1 || filepath.Base(got.Cmd[0]) != "sh" {
		t.Errorf("cmd %q", got.Cmd)
	}
}

func TestHostImageHasThisMachinesDirectories(t *testing.T) {
	t.Parallel()
	got, err := made(flagsOf(t, [2]string{"-image", "i=host"}), file.Image{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Files["/usr/bin"] == "" || got.Files["/usr/lib"] == "" {
		t.Errorf("got %+v", got)
	}
	testkit.Equal(t, `Files["/etc"]`, got.Files["/etc"], "")
	testkit.Equal(t, "len(got.Cmd)", len(got.Cmd), 0)
	var resolver runtime.Resolver
	if _, err := resolver.Binds(got); err != nil {
		t.Error(err)
	}
}

func TestMissingProgramsAreReportedTogether(t *testing.T) {
	t.Parallel()
	f := flagsOf(t, [2]string{"-image", "i=no-such-program,/no/such/file,sh:bin/sh,./nor-this"})
	_, err := made(f, file.Image{})
	want := `-image i: no-such-program: no program of that name is on PATH; give its path, ./no-such-program for one in this directory
-image i: /no/such/file: there is no such file
-image i: sh:bin/sh: "bin/sh" is no path in a container: it begins with /
-image i: ./nor-this: there is no such file`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestNoProgramCanLieInADirectoryOfTheHost(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "sh")
	_, err := made(flagsOf(t, [2]string{"-image", "i=sh:/usr/bin/no-such-program,host"}), file.Image{})
	if want := "-image i: /usr/bin/no-such-program: /usr/bin is a read-only directory of this machine; without a " +
		"path in the container the program comes first on PATH"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	other := flagsOf(t, [2]string{"-image", "i=sh:/usr/bin/env,host,sh:/opt-2/x"})
	if _, err := made(other, file.Image{}); err != nil {
		t.Error(err)
	}
}

func TestNamesAreThoseOfAllFlags(t *testing.T) {
	t.Parallel()
	f := flagsOf(t, [2]string{"-image", "b=sh"}, [2]string{"-image", "*=sh"}, [2]string{"-cmd", "a=x"},
		[2]string{"-cmd", "b=x"}, [2]string{"-entrypoint", "c=x"})
	if got := strings.Join(f.names(), " "); got != "a b c" {
		t.Errorf("got %s", got)
	}
	if !f.knows("b") || !f.knows("a") {
		t.Error("who has programs")
	}
	if flagsOf(t, [2]string{"-cmd", "a=x"}).knows("a") {
		t.Error("who has programs")
	}
}

func FuzzSet(f *testing.F) {
	for _, text := range []string{"a=b", "a=b,c:/d", "=", "a=[\"x\"]", "a=["} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var flags Flags
		err := flags.Set(text)
		named := len(flags.names()) == 1 || flags.programs[runtime.AllImages] != nil
		if valid := named && !strings.HasPrefix(text, "="); err == nil && !valid {
			t.Errorf("%q names %q", text, flags.names())
		}
		if flags.SetCommand(text) == nil && !strings.Contains(text, "=") {
			t.Errorf("%q was taken", text)
		}
	})
}
