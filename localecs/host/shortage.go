package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shortage turns an error that means "there are no more of these" into a
// *MissingError that names the limit. Other errors stay as they are. kinds are
// those of the namespaces that were to be made: net, pid, mnt, uts, ipc. A file for which
// there is no space is on a disk that is full.
func Shortage(err error, kinds ...string) error {
	problem, instead := "", ""
	_, known := errors.AsType[*MissingError](err)
	switch {
	case known:
		return err
	case errors.Is(err, unix.EMFILE):
		// The soft limit was raised when this process began; Go does that.
		problem, instead = "open file limit reached", "raise the hard limit (ulimit -Hn): a task needs one, and four for each container"
	case errors.Is(err, unix.ENFILE):
		problem, instead = "open file limit reached", "raise sysctl fs.file-max"
	case errors.Is(err, unix.EAGAIN):
		problem, instead = "process limit reached", "raise pids.max of its control group, or the user's limit (ulimit -u)"
	case errors.Is(err, unix.ENOSPC) && len(kinds) > 0 && !AboutFile(err):
		problem, instead = "namespace limit reached", "raise "+lowest(kinds, readLimit)
	default:
		return err
	}
	return &MissingError{Problem: problem, Instead: instead, Err: err}
}

// AboutFile reports whether the error is one of a file, and not of a process that could
// not be started or of another system call.
func AboutFile(err error) bool {
	file, ok := errors.AsType[*fs.PathError](err)
	return ok && file.Op != "fork/exec"
}

// Refused turns an error that means "not you" or "not this kernel" into a
// *MissingError. Other errors stay as they are.
func Refused(err error) error {
	_, known := errors.AsType[*MissingError](err)
	e := &MissingError{Err: err}
	switch {
	case known:
		return err
	case errors.Is(err, unix.EPERM):
		e.Problem = "this process lacks the permission (EPERM)"
	case errors.Is(err, unix.ENOSYS):
		e.Need = "this system call (Linux 5.12 or later has all)"
	default:
		return err
	}
	if slices.Contains(readSetting("/proc/self/status"), filtered) {
		e.Instead = "a seccomp filter is on, as inside a container: run outside of it, or with --privileged"
	}
	return e
}

// Fault reports whether the host is the cause of an error: it is a *MissingError, or a
// disk is full or broken.
func Fault(err error) bool {
	_, missing := errors.AsType[*MissingError](err)
	is := func(errno error) bool { return errors.Is(err, errno) }
	return missing || slices.ContainsFunc([]error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO}, is)
}

// lowest names the limits of some kinds of namespaces that are lower than those
// of others: the kernel does not say which it was. A namespace counts for each
// user namespace around it, too, whose limits cannot be seen.
func lowest(kinds []string, read func(kind string) (int, bool)) string {
	var names []string
	low := 0
	for _, kind := range kinds {
		limit, ok := read(kind)
		switch {
		case !ok || len(names) > 0 && limit > low:
			continue
		case len(names) == 0 || limit < low:
			names, low = nil, limit
		}
		names = append(names, "user.max_"+kind+"_namespaces")
	}
	if len(names) == 0 {
		return "the limits on namespaces"
	}
	return fmt.Sprintf("sysctl %s (%d)", strings.Join(names, ", "), low)
}

func readLimit(kind string) (int, bool) {
	text, err := os.ReadFile("/proc/sys/user/max_" + kind + "_namespaces")
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}
