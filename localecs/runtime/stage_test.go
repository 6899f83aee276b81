package runtime

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/host"
)

func TestDispatchIgnoresOtherProcesses(t *testing.T) {
	t.Parallel()
	host.Dispatch(Role()) // exits in a container
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	failed, err := json.Marshal(stageError{Step: "attach mounts", Text: "/v: no such file or directory", Errno: syscall.ENOENT})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, status, want string
		warnings           []string
		ended              bool
	}{
		{"runs", "+", "", nil, false},
		{"runs without something", "!no /sys\n!no luck\n+", "", []string{"no /sys", "no luck"}, false},
		{"setup failed", string(failed), "attach mounts: /v: no such file or directory", nil, false},
		{"setup failed later", "!no /sys\n" + string(failed), "attach mounts: /v: no such file or directory", []string{"no /sys"}, false},
		{"exec failed after it said it would run", `+{"Text":"exec: \"x\": exec format error","Errno":8}`, `exec: "x": exec format error`, nil, false},
		{"silence", "", "", nil, true},
		{"silence after a warning", "!no /s", "", []string{"no /s"}, true},
		{"cut short", `{"Step":"att`, "", nil, true},
	} {
		warnings, report, ended := parseStatus([]byte(tc.status))
		got := ""
		if report != nil {
			got = report.Error()
		}
		testkit.Equal(t, tc.name+": error", got, tc.want)
		testkit.Equal(t, tc.name+": ended", ended, tc.ended)
		if !slices.Equal(warnings, tc.warnings) {
			t.Errorf("%s: warnings %q, want %q", tc.name, warnings, tc.warnings)
		}
	}
	_, report, _ := parseStatus(failed)
	if !errors.Is(report, unix.ENOENT) {
		t.Error("the error number is lost")
	}
	if errors.Is(&stageError{Text: "x"}, unix.ENOENT) || (&stageError{}).Unwrap() != nil {
		t.Error("an error number out of nothing")
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("+"))
	f.Add([]byte("!x\n+"))
	f.Add([]byte(`+{"Text":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, report, ended := parseStatus(b); report != nil && ended {
			t.Error("both a report and silence")
		}
	})
}

func TestLookPath(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{one + "/data": 0o644, one + "/both": 0o644, two + "/both": 0o755, two + "/tool": 0o100} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(one+"/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/nowhere", "X=1", "PATH=" + one + ":" + two}
	for _, tc := range []struct{ file, want, err string }{
		{"tool", two + "/tool", ""}, // one/tool is a directory
		{"both", two + "/both", ""}, // one/both cannot be executed
		{two + "/tool", two + "/tool", ""},
		{"data", "", `exec: "data": executable file not found in $PATH`},
		{"", "", `exec: "": executable file not found in $PATH`},
		{one + "/data", "", `exec: "` + one + `/data": stat ` + one + `/data: permission denied`},
		{one + "/tool", "", `exec: "` + one + `/tool": stat ` + one + `/tool: is a directory`},
		{"/no/such", "", `exec: "/no/such": stat /no/such: no such file or directory`},
	} {
		got, err := lookPath(tc.file, env)
		if strings.Contains(tc.err, "PATH") && !errors.Is(err, unix.ENOENT) {
			t.Errorf("%q: %v is not ENOENT", tc.file, err)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%q: %q, %q; want %q, %q", tc.file, got, text, tc.want, tc.err)
		}
	}
}

func TestExplainExecNamesTheInterpreter(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	for content, want := range map[string]string{
		"#! /usr/bin/env python3\n": `exec: "s": the script's interpreter /usr/bin/env is not in the image: no such file or directory`,
		"#!/bin/none":               `exec: "s": the script's interpreter /bin/none is not in the image: no such file or directory`,
		"#!\n":                      `exec: "s": no such file or directory`,
		"\x7fELF":                   `exec: "s": no such file or directory`,
		"":                          `exec: "s": no such file or directory`,
	} {
		if err := os.WriteFile(script, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := explainExec("s", script, unix.ENOENT); err.Error() != want || !errors.Is(err, unix.ENOENT) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	if err := explainExec("s", script, unix.ENOEXEC); err.Error() != `exec: "s": neither a program for this machine nor a script that begins with #!: exec format error` {
		t.Error(err)
	}
	if interpreter, err := Interpreter("/bin/sh"); err == nil && interpreter != "" {
		want := `exec: "s": the program's dynamic loader ` + interpreter + ` is not in the image: no such file or directory`
		if err := explainExec("s", "/bin/sh", unix.ENOENT); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := explainExec("s", "/no/such", unix.ENOENT); err.Error() != `exec: "s": no such file or directory` {
		t.Error(err)
	}
	if explainExec("s", script, nil) != nil {
		t.Error("success became an error")
	}
}

// The simulator must notice a spawner that has ended, and one that refuses.
func TestRequestFailsCleanly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(net.Conn)
		want   string
	}{
		"ended":         {func(c net.Conn) { c.Close() }, "the spawner exited"},
		"refused":       {func(c net.Conn) { _, _ = c.Write([]byte("operation not permitted")); c.Close() }, "clone: operation not permitted"},
		"no descriptor": {func(c net.Conn) { _, _ = c.Write([]byte{started}); c.Close() }, "clone: +"},
	} {
		ours, theirs := pair(t)
		go func() {
			request, fds, err := receive(theirs)
			testkit.ErrorContains(t, err, "")
			testkit.Equal(t, name+": request", request, sharedPIDs)
			testkit.Equal(t, name+": number of files", len(fds), 2)
			for _, fd := range fds {
				unix.Close(fd)
			}
			tc.answer(theirs)
		}()
		pidfd, err := sharedPIDs.ask(ours, os.Stdin, os.Stdout)
		testkit.Equal(t, name+": descriptor", pidfd, -1)
		testkit.ErrorContains(t, err, tc.want)
	}
}

func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.UnixConn)
		t.Cleanup(func() { c.Close() })
	}
	return conns[0], conns[1]
}
