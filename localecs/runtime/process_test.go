package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/network"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestProcessAsDefined(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	img := toolbox(t)
	img.Env = []string{"FROM=image", "KEPT=image"}
	_, out := run(t, r, Spec{
		Image: img, User: "5995", WorkingDir: "/made/for/it", Hostname: "h", Env: []string{"FROM=definition", "A=1", "A=2"},
		Ulimits: []Ulimit{{"nofile", 1024, 4096}, {"core", 0, 0}},
		Args:    []string{"/bin/helper", "facts"},
	})
	f := factsOf(t, out)
	want := facts{
		PID: 1, UID: 5995, GID: 5990, Cwd: "/made/for/it", Host: "h",
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=h",
			"FROM=definition", "KEPT=image", "A=2",
		},
		Processes: []string{"/proc/1"},
		// chown dac_override fowner fsetid kill setgid setuid setpcap
		// net_bind_service net_raw sys_chroot audit_write setfcap
		Bounding: 0xa00425fb &^ (1 << unix.CAP_MKNOD), NoNewPrivs: 1, Session: 1, Home: "/",
	}
	f.Descriptors, f.Nofile = nil, [2]uint64{} // a Go program changes its own limit
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUlimits(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, init := range []bool{false, true} {
		_, out := run(t, r, Spec{
			Ulimits: []Ulimit{{"nofile", 1024, 4096}, {"core", 0, 7168}}, InitProcess: init,
			Args: sh("echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Sc) $(ulimit -Hc)"),
		})
		if want := "1024 4096 0 14\n"; out != want { // dash counts core in blocks of 512
			t.Errorf("init %v: %q, want %q", init, out, want)
		}
	}
}

func TestUserForms(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for user, want := range map[string]string{
		"": "0:0", "envoy": "5995:5990", "5995": "5995:5990", "5995:7": "5995:7", "1000": "1000:0", "nobody": "65534:65534", "envoy:root": "5995:0",
	} {
		_, out := run(t, r, Spec{User: user, Args: []string{"/bin/helper", "facts"}})
		if f := factsOf(t, out); fmt.Sprintf("%d:%d", f.UID, f.GID) != want {
			t.Errorf("user %q is %d:%d, want %s", user, f.UID, f.GID, want)
		}
	}
}

func TestUlimitAboveTheHostsIsLoweredLoudly(t *testing.T) {
	t.Parallel()
	limits, warnings, err := resolveLimits(
		[]Ulimit{{"nofile", 65535, 65535}, {"nproc", 10, 20}},
		func(int) (uint64, error) { return 20000, nil })
	testkit.ErrorContains(t, err, "")
	if len(limits) != 2 {
		t.Fatalf("limits %+v, want two", limits)
	}
	testkit.Equal(t, "limits of nofile", [2]uint64{limits[0].Soft, limits[0].Hard}, [2]uint64{20000, 20000})
	testkit.Equal(t, "hard limit of nproc", limits[1].Hard, 20)
	want := []string{"ulimit nofile is 20000:20000 instead of 65535:65535: the simulator itself has no more and lacks CAP_SYS_RESOURCE"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []Ulimit{{"files", 1, 1}, {"nofile", 2, 1}} {
		if _, _, err := resolveLimits([]Ulimit{bad}, func(int) (uint64, error) { return 1 << 40, nil }); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestWarningsAreLogged(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	var log bytes.Buffer
	r.log = hclog.New(&hclog.LoggerOptions{Output: &log})
	r.hardLimit = func(int) (uint64, error) { return 512, nil }
	c, _ := start(t, r, Spec{Args: sh("exit 0"), Ulimits: []Ulimit{{"nofile", 65535, 65535}}})
	if exit := await(t, c); exit.Code != 0 || len(c.warnings) != 1 {
		t.Errorf("%+v, %q", exit, c.warnings)
	}
	if !strings.Contains(log.String(), "container=app") || !strings.Contains(log.String(), "512:512 instead of 65535:65535") {
		t.Errorf("log: %s", log.String())
	}
}

// Every way not to start. Nothing stays.
func TestContainerThatCannotStart(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/usr/bin/python3 -u\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	img := toolbox(t)
	img.Programs["/bin/script"] = script
	img.Programs["/bin/data"] = data
	img.Files = map[string]string{"/opt": t.TempDir(), "/srv": t.TempDir(), "/data.txt": data}
	const has = `; image "toolbox" has /bin/data, /bin/helper, /bin/script, /bin/sh, /bin/sleep, /data.txt and 2 more`
	for _, init := range []bool{false, true} {
		for _, tc := range []struct {
			args []string
			want string
			is   error
		}{
			{[]string{"/missing"}, `exec: "/missing": stat /missing: no such file or directory` + has, unix.ENOENT},
			{[]string{"missing", "arg"}, `exec: "missing": executable file not found in $PATH` + has, unix.ENOENT},
			{[]string{"/etc/hosts"}, `exec: "/etc/hosts": stat /etc/hosts: permission denied`, unix.EACCES},
			{[]string{"/etc"}, `exec: "/etc": stat /etc: is a directory`, unix.EISDIR},
			{[]string{"/bin/script"}, `exec: "/bin/script": the script's interpreter /usr/bin/python3 is not in the image: no such file or directory` + has, unix.ENOENT},
			{[]string{"data"}, `exec: "data": neither a program for this machine nor a script that begins with #!: exec format error`, unix.ENOEXEC},
			{nil, `no command specified: neither the definition nor image "toolbox" has one`, nil},
		} {
			_, err := r.Start(Spec{Name: "app", Image: img, Args: tc.args, InitProcess: init})
			var start *StartError
			if !errors.As(err, &start) || start.Err.Error() != tc.want {
				t.Errorf("init %v, %q: %v, want %s", init, tc.args, err, tc.want)
				continue
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("init %v, %q: %v, want %v", init, tc.args, err, tc.is)
			}
			wantReason := "CannotStartContainerError: ResourceInitializationError: failed to create new container runtime task: " +
				"failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: " + tc.want + ": unknown"
			if start.Reason() != wantReason {
				t.Errorf("reason %q", start.Reason())
			}
			if brief := Brief(start.Reason()); brief != "CannotStartContainerError: "+tc.want {
				t.Errorf("in brief %q", brief)
			}
		}
	}
	if _, err := r.Start(Spec{Name: "app", Image: img, Args: sh("true"), User: "ghost"}); err == nil ||
		err.Error() != `start container "app": unable to find user ghost: no matching entries in passwd file` {
		t.Errorf("unknown user: %v", err)
	}
	img.Programs["/bin/gone"] = "/no/such/program"
	var notFound *NotFoundError
	if err := prepare(r, img); !errors.As(err, &notFound) || notFound.Target != "/bin/gone" {
		t.Errorf("Prepare: %v", err)
	}
	// None is left. The last one is taken off the list after Start returned.
	eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.containers) == 0
	})
}

func TestLongReasonIsCut(t *testing.T) {
	t.Parallel()
	err := &StartError{Container: "app", Err: errors.New(strings.Repeat("ü", 2000))}
	if n := len([]rune(err.Reason())); n != 1024 {
		t.Errorf("%d characters, want 1024", n)
	}
}

// One network for a task's containers.
func TestContainersShareTheTasksNetwork(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	task := newTask(t)
	c, _ := start(t, r, Spec{netNS: task.File(), Args: []string{"/bin/sleep", "1000"}})
	if got, want := namespaceOf(c.PID(), "net"), namespaceOf(os.Getpid(), "net"); got == want || got == "" {
		t.Errorf("network namespace %q, the host's is %q", got, want)
	}
	l, err := task.ListenMetadata()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "metadata\n")
			conn.Close()
		}
	}()
	for _, init := range []bool{false, true} {
		_, out := run(t, r, Spec{netNS: task.File(), InitProcess: init, Args: []string{"/bin/helper", "fetch", network.MetadataIP + ":80"}})
		if out != "metadata\n" {
			t.Errorf("init %v: %q", init, out)
		}
	}
	if got := c.Exec(t.Context(), ExecSpec{Argv: []string{"/bin/helper", "fetch", network.MetadataIP + ":80"}}); got.Output != "metadata\n" {
		t.Errorf("probe: %+v", got)
	}
	server, out := start(t, r, Spec{netNS: task.File(), Args: []string{"/bin/helper", "serve", "127.0.0.1:9000"}})
	out.await(t, "ready")
	if _, got := run(t, r, Spec{netNS: task.File(), Args: []string{"/bin/helper", "fetch", "127.0.0.1:9000"}}); got != "served\n" {
		t.Errorf("sibling by loopback: %q", got)
	}
	conn, err := task.DialContext(context.Background(), "tcp", "127.0.0.1:9000")
	if err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	if _, err := net.Dial("tcp", "127.0.0.1:9000"); err == nil {
		t.Error("the host reaches the container's loopback")
	}
	server.Kill()
}

func TestOutputIsWrittenInWholeLines(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	var lines lineLog
	c, err := r.Start(Spec{Name: "app", Image: toolbox(t), Stdout: &lines, Stderr: &lines,
		Args: sh(`i=0; while [ $i -lt 200 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done; echo -n "no newline"`)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, c)
	if len(lines.writes) != 401 || !slices.Contains(lines.writes, "no newline\n") {
		t.Errorf("%d writes, the last is %q", len(lines.writes), lines.writes[len(lines.writes)-1])
	}
}

func TestWriterThatFailsDoesNotStopTheContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, err := r.Start(Spec{Name: "app", Image: toolbox(t), Stdout: brokenWriter{},
		Args: sh(`i=0; while [ $i -lt 20000 ]; do echo "a line that fills the pipe"; i=$((i+1)); done; exit 4`)})
	if err != nil {
		t.Fatal(err)
	}
	if exit := await(t, c); exit.Code != 4 {
		t.Errorf("%+v", exit)
	}
}

func TestLongLinesAreSplit(t *testing.T) {
	t.Parallel()
	var lines lineLog
	CopyLines(&lines, strings.NewReader("short\n"+strings.Repeat("x", 40000)+"\n"))
	var sizes []int
	for _, l := range lines.writes {
		sizes = append(sizes, len(l))
	}
	if diff := cmp.Diff([]int{6, 16385, 16385, 7233}, sizes); diff != "" {
		t.Error(diff)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestClosedRuntime(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	default:
		t.Error("Close returned before the container had ended")
	}
	if _, err := r.Start(Spec{Args: sh("true"), Image: toolbox(t)}); !errors.Is(err, ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// prepare looks for all that an image lists.
func prepare(r *Runtime, i Image) error {
	_, err := r.images.Binds(i)
	return err
}
