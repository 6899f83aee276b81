package host

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// CheckNamespace checks the namespace of a child of Run: a security module may let it have a user namespace and refuse
// what that is for. The error is a *MissingError.
func CheckNamespace() error {
	// What the child's mounts are anyway; it takes the right to mount.
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	return explain(err, "run as root", readSetting)
}

// filtered is the line of a process's status that may not make every system call.
const filtered = "Seccomp:\t2"

// setting is a switch of the host that forbids user namespaces, or what they are for.
type setting struct {
	path, refuses, says string
}

func settings() []setting {
	list := []setting{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone is 0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns is 1"},
		{"/proc/self/status", filtered, "a seccomp filter is on, as inside a container"},
	}
	for _, kind := range []string{"user", "mnt", "net", "pid", "uts", "ipc"} {
		list = append(list, setting{"/proc/sys/user/max_" + kind + "_namespaces", "0", "sysctl user.max_" + kind + "_namespaces is 0"})
	}
	return list
}

// readSetting returns a file's lines, none for one that cannot be read.
func readSetting(path string) []string {
	b, _ := os.ReadFile(path)
	return strings.Split(string(b), "\n")
}

func explain(err error, instead string, read func(path string) []string) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err // the path is ours, and adds nothing
	}
	need := "user namespaces for this user"
	var found []string
	for _, s := range settings() {
		for _, line := range read(s.path) {
			if line == s.refuses {
				found = append(found, s.says)
			}
		}
	}
	if len(found) > 0 {
		need += " (" + strings.Join(found, ", ") + ")"
	}
	const what = "run without root"
	// A kernel built without user namespaces, and one that has no more of them.
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EUSERS) {
		return &MissingError{What: what, Need: need, Instead: instead, Err: err}
	}
	return Explain(what, need, instead, err)
}
