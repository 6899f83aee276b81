package host

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// MissingError is a feature of the host that a local ECS needs and did not find.
type MissingError struct {
	// What was to be done: "make a task network"; empty when Err states it.
	What string
	// Need names the capability or the kernel feature. Problem, if it is set, is in the
	// text instead: a limit that was reached, or a permission.
	Need, Problem string
	// Instead is the way round it; empty when there is none.
	Instead string
	// Err is the system's error; nil when a check found the gap.
	Err error
}

// Error returns one line: what, why, need, way round.
func (e *MissingError) Error() string {
	var b strings.Builder
	if e.What != "" {
		b.WriteString(e.What + ": ")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "%v: ", e.Err)
	}
	b.WriteString(cmp.Or(e.Problem, "the host lacks "+e.Need))
	if e.Instead != "" {
		fmt.Fprintf(&b, "; %s", e.Instead)
	}
	return b.String()
}

// Unwrap returns the system's error.
func (e *MissingError) Unwrap() error { return e.Err }

// Cap is a Linux capability.
type Cap struct {
	Name string
	Bit  int
}

// NetAdmin and the following return the capabilities that namespaces, mounts and probes need.
func NetAdmin() Cap    { return Cap{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN} }
func SysAdmin() Cap    { return Cap{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN} }
func SysChroot() Cap   { return Cap{"CAP_SYS_CHROOT", unix.CAP_SYS_CHROOT} }
func SysPtrace() Cap   { return Cap{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE} }
func SysResource() Cap { return Cap{"CAP_SYS_RESOURCE", unix.CAP_SYS_RESOURCE} }
func SetUID() Cap      { return Cap{"CAP_SETUID", unix.CAP_SETUID} }
func SetGID() Cap      { return Cap{"CAP_SETGID", unix.CAP_SETGID} }
func setFCap() Cap     { return Cap{"CAP_SETFCAP", unix.CAP_SETFCAP} }
func NetBind() Cap     { return Cap{"CAP_NET_BIND_SERVICE", unix.CAP_NET_BIND_SERVICE} }
func SetPCap() Cap     { return Cap{"CAP_SETPCAP", unix.CAP_SETPCAP} }
func Chown() Cap       { return Cap{"CAP_CHOWN", unix.CAP_CHOWN} }
func Kill() Cap        { return Cap{"CAP_KILL", unix.CAP_KILL} }

// Effective returns the calling process's effective capabilities as a bit set.
func Effective() (uint64, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, fmt.Errorf("read own capabilities: %w", err)
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32, nil
}

// CheckCaps returns a *MissingError when one of the capabilities is not effective.
func CheckCaps(what, instead string, caps ...Cap) error {
	have, err := Effective()
	if err != nil {
		return err
	}
	if missing := MissingCaps(have, caps...); len(missing) > 0 {
		return &MissingError{What: what, Need: strings.Join(missing, ", ") + " (run as root)", Instead: instead}
	}
	return nil
}

// MissingCaps returns the names of the capabilities that are not in have.
func MissingCaps(have uint64, caps ...Cap) []string {
	var names []string
	for _, c := range caps {
		if have&(1<<c.Bit) == 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// Explain turns an error that means "this kernel or this user cannot" into a *MissingError that names need. Other
// errors get the verb and object only, and so does a *MissingError, which has its need.
func Explain(what, need, instead string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*MissingError](err); known {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, errno := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENODEV, unix.ENOSPC, unix.EROFS} {
		if errors.Is(err, errno) {
			return &MissingError{What: what, Need: need, Instead: instead, Err: err}
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
