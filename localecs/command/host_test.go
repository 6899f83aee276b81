package command

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lesserHosts returns roles that take something from this process and then execute localecs: arguments, "--", command
// line.
func lesserHosts() map[string]func([]string) int {
	return map[string]func([]string) int{
		"unprivileged": lesser(func([]string) error {
			return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
		}),
		"limited": lesser(func(args []string) error {
			return os.WriteFile("/proc/sys/user/max_"+args[0]+"_namespaces", []byte(args[1]), 0)
		}),
		"without": lesser(func(args []string) error { return deny(args[0], args[1]) }),
		"files": lesser(func(args []string) error {
			n, err := strconv.ParseUint(args[0], 10, 64)
			return orElse(err, func() error { return syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}) })
		}),
		"readonly": lesser(func(args []string) error {
			return orElse(mountsOfItsOwn(), func() error {
				return orElse(unix.Mount(args[0], args[0], "", unix.MS_BIND, ""), func() error {
					return unix.Mount("", args[0], "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
				})
			})
		}),
		"full": lesser(func(args []string) error { // a small disk
			return orElse(mountsOfItsOwn(), func() error {
				return orElse(os.MkdirAll(args[0], 0o755), func() error {
					return unix.Mount("full", args[0], "tmpfs", 0, args[1])
				})
			})
		}),
		"output": lesser(func(args []string) error {
			fd, err := unix.Open(args[0], unix.O_WRONLY, 0)
			return orElse(err, func() error { return unix.Dup2(fd, 1) })
		}),
		"taken": lesser(func(args []string) error { // ports that another program listens on
			var errs []error
			for _, port := range args {
				errs = append(errs, take(port))
			}
			return errors.Join(errs...)
		}),
		"unmounted": lesser(func(args []string) error {
			return orElse(mountsOfItsOwn(), func() error { return unix.Unmount(args[0], unix.MNT_DETACH) })
		}),
	}
}

// take listens on a port for as long as this process lives, also as another program.
func take(port string) error {
	l, err := net.Listen("tcp", port)
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	_, err = unix.Dup(int(f.Fd())) // without close-on-exec
	return err
}

func orElse(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func mountsOfItsOwn() error {
	return orElse(unix.Unshare(unix.CLONE_NEWNS), func() error {
		return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	})
}

// lesser makes a role of what it takes away.
func lesser(take func(args []string) error) func([]string) int {
	return func(args []string) int {
		runtime.LockOSThread()
		i := slices.Index(args, "--")
		err := take(args[:i])
		if err == nil {
			err = syscall.Exec(args[i+1], args[i+1:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, args, err)
		return 99
	}
}

// deny makes a system call fail, as the filter of a container engine or an old kernel does.
func deny(call, with string) error {
	number, ok := map[string]uint32{
		"open_tree": unix.SYS_OPEN_TREE, "mount_setattr": unix.SYS_MOUNT_SETATTR, "move_mount": unix.SYS_MOVE_MOUNT,
		"close_range": unix.SYS_CLOSE_RANGE, "unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "mount": unix.SYS_MOUNT,
		"pivot_root": unix.SYS_PIVOT_ROOT, "sethostname": unix.SYS_SETHOSTNAME, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
	}[call]
	errno, known := map[string]unix.Errno{"EPERM": unix.EPERM, "ENOSYS": unix.ENOSYS}[with]
	if !ok || !known {
		return fmt.Errorf("no system call %s or error %s", call, with)
	}
	const returnErrno, allow = 0x00050000, 0x7fff0000
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: returnErrno | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// What a host lacks is reported, with a workaround. Nothing of the attempt is left.
func TestMissingHostCapabilitiesAreReported(t *testing.T) {
	t.Parallel()
	const (
		vpc      = "make network: make the VPC: "
		runtime  = "make runtime: start a container: "
		server   = `start consul server: start container "consul-server": `
		full     = "no space left on device: namespace limit reached; raise sysctl user.max_"
		filtered = "a seccomp filter is on, as inside a container: run outside of it, or with --privileged"
		noRight  = "operation not permitted: this process lacks the permission (EPERM); " + filtered
		around   = "; -network host does not need this; it prints its limitations"
	)
	w := newMachine(t)
	for _, tt := range []struct{ host, want string }{
		{"limited net 0", vpc + "enter network namespace: " + full + "net_namespaces (0)"},
		{"limited net 2", "make a network namespace: enter network namespace: " + full + "net_namespaces (2)"},
		{"limited pid 0", runtime + "start the anchor process: " + full + "pid_namespaces (0)"},
		{"limited pid 1", server + "clone: " + full + "pid_namespaces (1)"},
		{"limited mnt 1", runtime + full + "mnt_namespaces (1)"},
		{"limited mnt 2", server + "open mounts: /dev/null: " + full + "mnt_namespaces (2)"},
		{"limited uts 0", server + "clone: " + full + "uts_namespaces (0)"},
		{"limited ipc 0", server + "clone: " + full + "ipc_namespaces (0)"},
		{"without open_tree ENOSYS", runtime + "function not implemented: the host lacks open_tree (Linux 5.12 or later)"},
		{"without mount_setattr ENOSYS", runtime + "function not implemented: the host lacks mount_setattr (Linux 5.12 or later)"},
		{"without close_range ENOSYS", runtime + "function not implemented: the host lacks close_range (Linux 5.11 or later)"},
		{"without move_mount ENOSYS", server + "protect /proc: /proc/bus: function not implemented: the host lacks this system call (Linux 5.12 or later has all); " + filtered},
		{"without unshare EPERM", vpc + "enter network namespace: operation not permitted: the host lacks network namespaces" + around},
		{"without setns EPERM", vpc + "leave network namespace: operation not permitted: the host lacks network namespaces" + around},
		{"without mount EPERM", server + "make mounts private: " + noRight},
		{"without pivot_root EPERM", server + "enter the root file system: " + noRight},
		{"without sethostname EPERM", server + "set the host name: " + noRight},
		{"without pidfd_send_signal ENOSYS", "make runtime: end a container: function not implemented: the host lacks pidfd_open and pidfd_send_signal (Linux 5.3 or later)"},
		{"readonly /proc/sys", "make network: let the VPC's gateway forward: open /proc/sys/net/ipv4/ip_forward: read-only file system: the host lacks a writable /proc/sys" + around},
		{"unmounted /proc", "make network: open own network namespace: /proc is that of another PID namespace: the host lacks a /proc with this process; mount it"},
		{"files 40", "too many open files: open file limit reached; raise the hard limit (ulimit -Hn): a task needs one, and four for each container"},
	} {
		a := w.run(order{Args: leaks(t), On: tt.host})
		clean(t, tt.host, a)
		if len(a.Kept) > 0 || a.Code != 3 || !strings.HasSuffix(a.Stderr, tt.want+"\n") || !strings.Contains(a.Stderr, "\nlocalecs run: ") && !strings.HasPrefix(a.Stderr, "localecs run: ") {
			t.Errorf("%s: kept %q, want exit 3 and %s\n%s", tt.host, a.Kept, tt.want, a.story())
		}
	}
}

// Disks that take nothing: the state directory's, and that of standard output.
func TestDisksThatTakeNothing(t *testing.T) {
	t.Parallel()
	w := newMachine(t)
	state := filepath.Join(w.dir, stateDir)
	const full = ": no space left on device\n"
	for _, tt := range []struct {
		host, want string
		code       int
	}{
		{"readonly " + w.dir, "localecs run: -dir: mkdir " + state + ": read-only file system\n", 1},
		{"full " + state + " nr_inodes=1", "localecs run: -dir: mkdir " + state + "/leaks" + full, 1},
		{"full " + state + " nr_inodes=3", "localecs run: write the certificate of STS and IAM: mkdir " + state + "/leaks/volumes" + full, 3},
		{"full " + state + " nr_inodes=14", "localecs run: step 1: start many: make volume data: mkdir " + state + "/leaks/volumes/", 3},
		// The containers go on. That one of them is deaf is the scenario's own fault.
		{"full " + state + " size=16k", "localecs run: warning: output of a container is lost from here on: " +
			"error=\"write " + state + "/leaks/logs/", 2},
		{"output /dev/full", "localecs run: standard output cannot be written: write /dev/stdout" + full, 3},
	} {
		a := w.run(order{Args: leaks(t), On: tt.host})
		clean(t, tt.host, a)
		if len(a.Kept) > 0 || a.Code != tt.code || !strings.Contains(a.Stderr, tt.want) {
			t.Errorf("%s: kept %q, want exit %d and %s\n%s", tt.host, a.Kept, tt.code, tt.want, a.story())
		}
	}
}
