package runtime

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// needsC skips a test that links programs where there is no C compiler.
func needsC(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("SKIPPED, NOT PROVEN: no C compiler")
	}
	return cc
}

func compile(t *testing.T, cc string, args ...string) {
	t.Helper()
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("cc %q: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// builtProgram builds prog -> libone (in ../lib by $ORIGIN) -> libtwo (in the directory that kind names), with the
// given linker option for the run path.
func builtProgram(t *testing.T, option string) (dir string) {
	t.Helper()
	cc := needsC(t)
	dir = t.TempDir()
	write(t, dir+"/two.c", "int two(void) { return 2; }\n")
	write(t, dir+"/one.c", "int two(void); int one(void) { return two() - 1; }\n")
	write(t, dir+"/main.c", "int one(void); int main(void) { return one() - 1; }\n")
	for _, sub := range []string{"bin", "lib"} {
		if err := os.MkdirAll(dir+"/"+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	compile(t, cc, "-shared", "-fPIC", "-o", dir+"/lib/libtwo.so", dir+"/two.c")
	compile(t, cc, "-shared", "-fPIC", "-o", dir+"/lib/libone.so", dir+"/one.c", "-L"+dir+"/lib", "-ltwo",
		"-Wl,--enable-new-dtags,-rpath,$ORIGIN")
	compile(t, cc, "-o", dir+"/bin/prog", dir+"/main.c", "-L"+dir+"/lib", "-lone", "-Wl,-rpath-link,"+dir+"/lib",
		"-Wl,"+option+",-rpath,$ORIGIN/../lib")
	return dir
}

func TestLibrariesFollowTheRunPathInTheContainer(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"--enable-new-dtags", "--disable-new-dtags"} {
		dir := builtProgram(t, option)
		binds, err := new(Resolver).Libraries(Bind{Source: dir + "/bin/prog", Target: "/app/bin/prog"})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []Bind{
			{dir + "/lib/libone.so", "/app/lib/libone.so"},
			{dir + "/lib/libtwo.so", "/app/lib/libtwo.so"},
		} {
			if !slices.Contains(binds, want) {
				t.Errorf("%s: no %v in %v", option, want, binds)
			}
		}
		if !slices.ContainsFunc(binds, func(b Bind) bool { return strings.HasPrefix(filepath.Base(b.Target), "libc.") && b.Source == b.Target }) {
			t.Errorf("%s: no libc in %v", option, binds)
		}
		if !slices.ContainsFunc(binds, func(b Bind) bool { return strings.HasPrefix(filepath.Base(b.Target), "ld") }) {
			t.Errorf("%s: no dynamic loader in %v", option, binds)
		}
	}
}

func TestMissingLibraryIsNamed(t *testing.T) {
	t.Parallel()
	dir := builtProgram(t, "--enable-new-dtags")
	if err := os.Remove(dir + "/lib/libtwo.so"); err != nil {
		t.Fatal(err)
	}
	img := Image{Name: "app", Programs: map[string]string{"/app/bin/prog": dir + "/bin/prog"}}
	_, err := new(Resolver).Binds(img)
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || !strings.Contains(err.Error(), "error while loading shared libraries: libtwo.so: cannot open shared object file") {
		t.Errorf("%v", err)
	}
	// A file of that name for another machine is none.
	write(t, dir+"/lib/libtwo.so", "\x7fELF not really")
	if _, err := new(Resolver).Binds(img); !errors.As(err, &notFound) {
		t.Errorf("%v", err)
	}
}

// However many files this process may still open, what is there is found or the
// limit is named: never "not found". Not parallel, since the limit is the process's.
func TestNoFileLeftToOpenIsNoMissingLibrary(t *testing.T) {
	dir := builtProgram(t, "--enable-new-dtags")
	write(t, dir+"/script", "#!/bin/sh\n")
	img := Image{Name: "app", Programs: map[string]string{"/app/bin/prog": dir + "/bin/prog", "/app/script": dir + "/script"}}
	want, err := new(Resolver).Binds(img)
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	refused, found := 0, 0
	for limit := uint64(3); limit < 64 && found == 0; limit++ {
		err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max})
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(Resolver).Binds(img)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		switch {
		case errors.Is(err, unix.EMFILE):
			refused++
		case err != nil || !slices.Equal(got, want):
			t.Errorf("limit %d: %v, %v", limit, got, err)
		default:
			found++
		}
	}
	if refused < 3 || found == 0 {
		t.Errorf("refused %d times, found %d times", refused, found)
	}
}

func TestProgramsThatCannotRunHereAreNamed(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	alien := slices.Clone(self)
	binary.NativeEndian.PutUint16(alien[18:], uint16(elf.EM_S390)) // e_machine
	write(t, dir+"/alien", string(alien))
	write(t, dir+"/cut", string(self[:3000]))
	write(t, dir+"/head", "\x7fELF")
	write(t, dir+"/odd", "\x7fELF\x09"+string(self[5:]))
	own, _ := ownMachine()
	cases := map[string]string{
		"/cut":  dir + "/cut is cut short: copy or build it again",
		"/head": dir + "/head is cut short: copy or build it again",
	}
	cases["/odd"] = dir + "/odd is a damaged program: unknown ELF class"
	if len(emulators()) == 0 {
		cases["/alien"] = dir + "/alien is a program for s390, but this machine is " + machineName(own)
	}
	for name, want := range cases {
		if _, err := new(Resolver).Libraries(Bind{dir + name, "/x"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, tc := range []struct {
		program, kernel elf.Machine
		want            bool
	}{{elf.EM_386, elf.EM_X86_64, false}, {elf.EM_386, elf.EM_AARCH64, true}, {own, own, false}} {
		testkit.Equal(t, fmt.Sprintf("%s on %s is foreign", tc.program, tc.kernel), foreign(tc.program, tc.kernel), tc.want)
	}
}

func TestStaticProgramsScriptsAndDataNeedNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/script", "#!/bin/sh\n")
	write(t, dir+"/short", "x")
	write(t, dir+"/empty", "")
	for _, name := range []string{"script", "short", "empty"} {
		if binds, err := new(Resolver).Libraries(Bind{dir + "/" + name, "/x"}); len(binds) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, binds, err)
		}
	}
	cc := needsC(t)
	write(t, dir+"/main.c", "int main(void) { return 0; }\n")
	compile(t, cc, "-static", "-o", dir+"/static", dir+"/main.c")
	if binds, err := new(Resolver).Libraries(Bind{dir + "/static", "/x"}); len(binds) > 0 || err != nil {
		t.Errorf("static: %v, %v", binds, err)
	}
}

func TestBindsAreSortedAndListedOnesWin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a", "#!/bin/sh\n")
	write(t, dir+"/data/file", "x")
	img := Image{
		Name:     "app",
		Programs: map[string]string{"/z": dir + "/a", "/a": dir + "/a", "/both": dir + "/a"},
		Files:    map[string]string{"/m": dir + "/data", "/both": dir + "/data/file"},
	}
	binds, err := new(Resolver).Binds(img)
	if err != nil {
		t.Fatal(err)
	}
	want := []Bind{{dir + "/a", "/a"}, {dir + "/a", "/both"}, {dir + "/data", "/m"}, {dir + "/a", "/z"}}
	if diff := cmp.Diff(want, binds); diff != "" {
		t.Error(diff)
	}
}

func TestMissingProgramIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/plain", "x")
	if err := os.Chmod(dir+"/plain", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		img  Image
		want string
		is   error
	}{
		{Image{Programs: map[string]string{"/p": dir + "/none"}}, `image "app": /p (` + dir + `/none on this host): no such file or directory`, fs.ErrNotExist},
		{Image{Files: map[string]string{"/f": dir + "/none"}}, `image "app": /f (` + dir + `/none on this host): no such file or directory`, fs.ErrNotExist},
		{Image{Programs: map[string]string{"/p": dir + "/plain"}}, `image "app": /p (` + dir + `/plain on this host): not an executable file: permission denied`, fs.ErrPermission},
		{Image{Programs: map[string]string{"/p": dir}}, `image "app": /p (` + dir + ` on this host): not an executable file: permission denied`, fs.ErrPermission},
	} {
		tc.img.Name = "app"
		_, err := new(Resolver).Binds(tc.img)
		if !errors.Is(err, tc.is) {
			t.Errorf("%v, want %v", err, tc.is)
		}
		testkit.WantError[*NotFoundError](t, err, tc.want)
	}
}

func TestProgramThatChangedIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := builtProgram(t, "--enable-new-dtags")
	r := new(Resolver)
	program := Bind{dir + "/bin/prog", "/bin/prog"}
	first, err := r.Libraries(program)
	if err != nil || len(first) == 0 {
		t.Fatal(first, err)
	}
	if again, err := r.Libraries(program); err != nil || &again[0] != &first[0] {
		t.Error("an unchanged program was read again", err)
	}
	write(t, program.Source, "#!/bin/sh\n# now a script\n")
	if now, err := r.Libraries(program); err != nil || len(now) != 0 {
		t.Errorf("%v, %v", now, err)
	}
}

func TestListedLibraries(t *testing.T) {
	t.Parallel()
	got := listed("\tlinux-vdso.so.1 (0x00007fc32f4cd000)\n" +
		"\tlibone.so => /app/bin/../lib/libone.so (0x00007fc32f2d5000)\n" +
		"\tlibc.so => /lib/ld-musl-x86_64.so.1 (0x7f00)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007fc32f4cf000)\n")
	if want := []string{"/app/bin/../lib/libone.so", "/lib/ld-musl-x86_64.so.1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
