package cluster_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// visit runs a shell's line in a place with other names.
func visit(t *testing.T, ctx context.Context, line string, change func(*cluster.Visitor, *cluster.RunOptions)) (code int, output string, err error) {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "mounts need root")
	}
	null, openErr := os.Open(os.DevNull)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer null.Close()
	out, write, pipeErr := os.Pipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	defer out.Close()
	v := cluster.Visitor{
		Session: runtime.Session{Argv: []string{"sh", "-c", line}, Stdin: null, Stdout: write, Stderr: write},
		Path:    "/bin/sh", Dir: "/usr", Env: []string{"PATH=/usr/bin:/bin", "X=1"}, Umask: 0o027,
	}
	p := cluster.RunOptions{Names: cluster.ResolverFiles("nameserver 192.0.2.1\n"), Temp: t.TempDir()}
	if change != nil {
		change(&v, &p)
	}
	code, err = cluster.Run(ctx, v, p)
	write.Close()
	text, readErr := io.ReadAll(out)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return code, string(text), err
}

func TestVisitorHasItsPlace(t *testing.T) {
	t.Parallel()
	before, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	code, output, err := visit(t, t.Context(), "cat /etc/resolv.conf; pwd; echo $X; umask; : > "+file+"; exit 5", nil)
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "exit code", code, 5)
	testkit.Equal(t, "output", output, "nameserver 192.0.2.1\n/usr\n1\n0027\n")
	if st, err := os.Stat(file); err != nil || st.Mode() != 0o640 {
		t.Errorf("its file: %v, %v", st, err)
	}
	if after, err := os.ReadFile("/etc/resolv.conf"); err != nil || string(after) != string(before) {
		t.Errorf("the host's names are others: %q, %v", after, err)
	}
}

func TestVisitorsThatCannotRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*cluster.Visitor, *cluster.RunOptions)
		code   int
		says   string
	}{
		"program":   {func(v *cluster.Visitor, _ *cluster.RunOptions) { v.Path = "/none" }, 127, `exec: "/none": no such file or directory`},
		"directory": {func(v *cluster.Visitor, _ *cluster.RunOptions) { v.Dir = "/none" }, 125, "enter /none: no such file or directory"},
		"no right":  {func(v *cluster.Visitor, _ *cluster.RunOptions) { v.Path = "/etc/passwd" }, 126, `exec: "/etc/passwd": permission denied`},
		"names":     {func(_ *cluster.Visitor, p *cluster.RunOptions) { p.Temp = "/none" }, 125, "no such file or directory"},
	} {
		code, _, err := visit(t, t.Context(), "", tt.change)
		testkit.ErrorContains(t, err, tt.says)
		testkit.Equal(t, name+": exit code", code, tt.code)
	}
}

// What a visitor leaves behind ends with it, or the place could not be taken away.
func TestVisitorsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, err := visit(t, ctx, "sleep 1000", nil); code != 137 || err != nil {
		t.Errorf("by its context: %d, %v", code, err)
	}
	// The output ends only when no process has it open any more.
	code, output, err := visit(t, t.Context(), "sleep 1000 & echo left", nil)
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "exit code with a child", code, 0)
	testkit.Equal(t, "output with a child", output, "left\n")
}
