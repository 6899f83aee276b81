package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestShortageNamesTheLimit(t *testing.T) {
	t.Parallel()
	for errno, want := range map[unix.Errno]string{
		unix.EMFILE: "fork/exec x: too many open files: open file limit reached; raise the hard limit (ulimit -Hn): a task needs one, and four for each container",
		unix.ENFILE: "fork/exec x: too many open files in system: open file limit reached; raise sysctl fs.file-max",
		unix.EAGAIN: "fork/exec x: resource temporarily unavailable: process limit reached; raise pids.max of its control group, or the user's limit (ulimit -u)",
		unix.ENOSPC: "fork/exec x: no space left on device: namespace limit reached; raise sysctl user.max_",
	} {
		err := Shortage(fmt.Errorf("start: %w", &os.PathError{Op: "fork/exec", Path: "x", Err: errno}), "pid", "mnt")
		var missing *MissingError
		if !errors.As(err, &missing) || !errors.Is(err, errno) {
			t.Errorf("%v, want a MissingError of %v", err, errno)
		}
		if !strings.HasPrefix(err.Error(), "start: "+want) {
			t.Errorf("%v, want start: %s", err, want)
		}
	}
	for _, err := range []error{nil, unix.EPERM, errors.New("else")} {
		if got := Shortage(err, "pid"); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	if missing := Shortage(unix.EMFILE); Shortage(missing) != missing {
		t.Error("what is explained was explained again")
	}
	for _, full := range []error{&os.PathError{Op: "mkdir", Path: "x", Err: unix.ENOSPC}, &os.PathError{Op: "open", Path: "x", Err: unix.ENOSPC}} {
		if err := Shortage(full, "mnt"); err != full {
			t.Errorf("a full disk became %v", err)
		}
	}
	if err := Shortage(unix.ENOSPC); err != unix.ENOSPC {
		t.Errorf("what is no namespace became %v", err)
	}
}

func TestRefusedNamesTheFilter(t *testing.T) {
	t.Parallel()
	for errno, want := range map[unix.Errno]string{
		unix.EPERM:  "mount: operation not permitted: this process lacks the permission (EPERM)",
		unix.ENOSYS: "mount: function not implemented: the host lacks this system call (Linux 5.12 or later has all)",
	} {
		err := Refused(fmt.Errorf("mount: %w", errno))
		var missing *MissingError
		if !errors.As(err, &missing) || !errors.Is(err, errno) {
			t.Errorf("%v, want a MissingError of %v", err, errno)
		}
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if Refused(err) != err {
			t.Error("what is explained was explained again")
		}
	}
	if err := Refused(unix.ENOENT); err != unix.ENOENT {
		t.Errorf("a missing file became %v", err)
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("start: %w", &MissingError{Need: "x"}), true},
		{fmt.Errorf("mkdir: %w", unix.ENOSPC), true},
		{&os.PathError{Err: unix.EROFS}, true},
		{fmt.Errorf("listen: %w", unix.EADDRINUSE), false},
		{errors.New("else"), false},
		{nil, false},
	} {
		if Fault(tt.err) != tt.want {
			t.Errorf("%v: want %t", tt.err, tt.want)
		}
	}
}

func TestLowestLimits(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"pid": 5, "mnt": 3, "uts": 3, "ipc": 9}
	read := func(kind string) (int, bool) { n, ok := limits[kind]; return n, ok }
	for _, tt := range []struct{ kinds, want string }{
		{"pid mnt uts ipc", "sysctl user.max_mnt_namespaces, user.max_uts_namespaces (3)"},
		{"pid", "sysctl user.max_pid_namespaces (5)"},
		{"ipc time pid", "sysctl user.max_pid_namespaces (5)"},
		{"time", "the limits on namespaces"},
	} {
		if got := lowest(strings.Fields(tt.kinds), read); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.kinds, got, tt.want)
		}
	}
	if _, ok := readLimit("pid"); !ok {
		t.Error("this kernel's own limit cannot be read")
	}
}
