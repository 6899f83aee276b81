package host

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestExplainNamesTheSetting(t *testing.T) {
	t.Parallel()
	wrapped := &os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: unix.EPERM}
	for _, tc := range []struct {
		name     string
		err      error
		settings map[string]string
		want     string
		missing  bool
	}{
		{"a sysctl", unix.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "0"},
			"run without root: no space left on device: the host lacks user namespaces for this user (sysctl user.max_user_namespaces is 0); run as root", true},
		{"Debian's switch, from fork", wrapped, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"},
			"run without root: operation not permitted: the host lacks user namespaces for this user (sysctl kernel.unprivileged_userns_clone is 0); run as root", true},
		{"AppArmor", unix.EACCES, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
			"run without root: permission denied: the host lacks user namespaces for this user (sysctl kernel.apparmor_restrict_unprivileged_userns is 1); run as root", true},
		{"a container, and no networks", wrapped, map[string]string{"/proc/self/status": "Name:\tlocalecs\nSeccomp:\t2\nSeccomp_filters:\t1", "/proc/sys/user/max_net_namespaces": "0"},
			"run without root: operation not permitted: the host lacks user namespaces for this user (a seccomp filter is on, as inside a container, sysctl user.max_net_namespaces is 0); run as root", true},
		{"nothing to see", unix.EPERM, map[string]string{"/proc/sys/user/max_user_namespaces": "10", "/proc/self/status": "Seccomp:\t0"},
			"run without root: operation not permitted: the host lacks user namespaces for this user; run as root", true},
		{"a kernel without", unix.EINVAL, nil, "run without root: invalid argument: the host lacks user namespaces for this user; run as root", true},
		{"too many", unix.EUSERS, nil, "run without root: too many users: the host lacks user namespaces for this user; run as root", true},
		{"something else", unix.EAGAIN, nil, "run without root: resource temporarily unavailable", false},
	} {
		err := explain(tc.err, "run as root", func(path string) []string { return strings.Split(tc.settings[path], "\n") })
		var missing *MissingError
		if err.Error() != tc.want || errors.As(err, &missing) != tc.missing {
			t.Errorf("%s: %q (missing %v), want %q", tc.name, err, missing != nil, tc.want)
		}
	}
	if explain(nil, "", nil) != nil {
		t.Error("success became an error")
	}
}

// inNamespace returns a command in a user namespace of root's, in which every ID up to 9999 is itself.
func inNamespace(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "mapping other users needs root")
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 10000}}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
	}
	return cmd
}

func TestHostThatRefuses(t *testing.T) {
	t.Parallel()
	run := testkit.SelfArgs("run", none, none, "facts")
	out, err := inNamespace(t, testkit.SelfArgs("no-namespaces", run...)...).Output()
	const want = "refused: run without root: no space left on device: the host lacks user namespaces for this user (sysctl user.max_user_namespaces is 0); give root CAP_SYS_ADMIN\n"
	var exit *exec.ExitError
	testkit.Equal(t, "output", string(out), want)
	if !errors.As(err, &exit) || exit.ExitCode() != 99 {
		t.Errorf("%v, want exit code 99", err)
	}
}

// The root of a user namespace has every capability, but not over the network that it was made in.
func TestUserNamespaceWithoutItsNetwork(t *testing.T) {
	t.Parallel()
	out, _ := inNamespace(t, testkit.SelfArgs("run", none, none, "facts")...).Output() // exit code 42
	_, line, _ := strings.Cut(string(out), "\n")
	var f facts
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	ids := []Extent{{Inside: 0, Outside: 0, Count: 10000}}
	want := facts{Inside: true, IDs: IDs{UIDs: ids, GIDs: ids, Groups: true}, Group: true, Setgroups: "done"}
	if d := cmp.Diff(want, f); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
