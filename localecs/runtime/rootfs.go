package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// newRoot is where the new root is put together. /proc exists everywhere and
// nothing is bind-mounted out of it, so it can be hidden in this namespace.
const newRoot = "/proc"

const rootSize = "1g"

// rootSteps make the root file system. Sources of bind mounts are opened as detached mounts first and attached after
// the pivot: a link that another container left in a shared volume then leads nowhere but into this container.
func rootSteps(c *stageConfig) []step {
	var sources []source
	return []step{
		{"join the task's network", func() error { return joinNetwork(c) }, true},
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }, true},
		{"open mounts", func() (err error) {
			sources, err = openSources(append(devices(), c.Mounts...))
			return err
		}, true},
		{"mount the root file system", func() error { return mountRoot(c.NoTTYGroup) }, true},
		{"enter the root file system", pivot, true},
		{"protect /proc", protectProc, true},
		{"write files", func() error { return fillRoot(c) }, false},
		{"attach mounts", func() error { return attachMounts(sources) }, true},
		{"make the working directory", func() error { return os.MkdirAll(c.Dir, 0o755) }, false},
		{"make the root read-only", func() error { return sealRoot(c.ReadOnly) }, true},
	}
}

func joinNetwork(c *stageConfig) error {
	if !c.JoinNet {
		return nil
	}
	return unix.Setns(netnsFD, unix.CLONE_NEWNET)
}

type source struct {
	stageMount
	fd  int
	dir bool
}

func openSources(mounts []stageMount) ([]source, error) {
	var opened []source
	for _, m := range mounts {
		s, err := openSource(m)
		if m.Optional && errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Source, err)
		}
		opened = append(opened, s)
	}
	// Parents before what is mounted inside them.
	slices.SortStableFunc(opened, func(a, b source) int { return strings.Count(a.Target, "/") - strings.Count(b.Target, "/") })
	return opened, nil
}

func openSource(m stageMount) (source, error) {
	const clone = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	deep := uint(0)
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, clone)
	if errors.Is(err, unix.EINVAL) {
		// A user namespace may not look under the mounts below a directory of the host; they come along.
		deep = unix.AT_RECURSIVE
		fd, err = unix.OpenTree(unix.AT_FDCWD, m.Source, clone|deep)
	}
	if err != nil {
		return source{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return source{}, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if !m.Device {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|deep, &attr); err != nil {
		return source{}, err
	}
	return source{stageMount: m, fd: fd, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// devices returns bind mounts of the host's: a user namespace could not make them.
func devices() []stageMount {
	var mounts []stageMount
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		mounts = append(mounts, stageMount{Source: "/dev/" + name, Target: "/dev/" + name, Device: true, Optional: name == "tty"})
	}
	return mounts
}

// mountRoot mounts what must be there before the pivot: a user namespace may
// mount proc only while it still sees the host's.
func mountRoot(noTTYGroup bool) error {
	unix.Umask(0)
	const plain = unix.MS_NOSUID | unix.MS_NODEV
	terminals := "newinstance,ptmxmode=0666,mode=0620"
	if !noTTYGroup {
		terminals += ",gid=5"
	}
	for _, m := range []struct {
		fstype, target string
		flags          uintptr
		data           string
	}{
		{"tmpfs", "", plain, "mode=0755,size=" + rootSize},
		{"proc", "/proc", plain | unix.MS_NOEXEC, ""},
		{"sysfs", "/sys", plain | unix.MS_NOEXEC | unix.MS_RDONLY, ""},
		{"tmpfs", "/dev", unix.MS_NOSUID | unix.MS_NOEXEC, "mode=0755,size=64k"},
		{"devpts", "/dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, terminals},
		{"tmpfs", "/dev/shm", plain | unix.MS_NOEXEC, "mode=1777,size=64m"},
	} {
		if m.target != "" {
			if err := unix.Mkdir(newRoot+m.target, 0o755); err != nil {
				return fmt.Errorf("%s: %w", m.target, err)
			}
		}
		if err := unix.Mount(m.fstype, newRoot+m.target, m.fstype, m.flags, m.data); err != nil {
			if err := without(m.fstype, err); err != nil {
				return fmt.Errorf("%s on /%s: %w", m.fstype, strings.TrimPrefix(m.target, "/"), err)
			}
		}
	}
	return nil
}

// without decides what a user namespace can do without. It may mount sysfs and proc only where it sees all of the
// host's, and sysfs only with its own network namespace.
func without(fstype string, err error) error {
	switch {
	case !errors.Is(err, unix.EPERM):
		return err
	case fstype == "sysfs":
		warn("/sys is empty: this user may not mount it, since parts of the host's /sys are masked or the network is the host's; run as root")
		return nil
	case fstype == "proc":
		return fmt.Errorf("%w: this user may not mount it where parts of the host's /proc are masked, as inside a container; run as root", err)
	}
	return err
}

// pivot makes the new root the root and drops the host's. Old and new root
// share a directory for a moment, so that no place for the old one is needed.
func pivot() error {
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// protectProc keeps root in the container from the kernel's settings, which no
// namespace keeps apart, and from what reads other processes' secrets.
func protectProc() error {
	for _, p := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"} {
		s, err := openSource(stageMount{Source: p, Target: p, ReadOnly: true})
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := s.attach(); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, p := range []string{"/proc/acpi", "/proc/scsi"} {
		err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

func fillRoot(c *stageConfig) error {
	for _, d := range []Dir{{Path: "/etc"}, {Path: "/tmp", Mode: 0o1777}, {Path: "/root", Mode: 0o700}} {
		if err := makeDir(d); err != nil {
			return err
		}
	}
	for _, d := range c.Scratch {
		if err := mountScratch(d); err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	for p, text := range c.Texts {
		if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, "/dev/"+link); err != nil {
			return err
		}
	}
	return os.Symlink("pts/ptmx", "/dev/ptmx")
}

func makeDir(d Dir) error {
	mode := cmp.Or(d.Mode, 0o755)
	if err := os.MkdirAll(d.Path, 0o755); err != nil {
		return err
	}
	if err := unix.Chown(d.Path, d.UID, d.GID); err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	if err := unix.Chmod(d.Path, mode); err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	return nil
}

func mountScratch(d Dir) error {
	if err := os.MkdirAll(d.Path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", d.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size="+rootSize); err != nil {
		return err
	}
	return makeDir(d)
}

func attachMounts(sources []source) error {
	for _, s := range sources {
		if err := s.makeTarget(); err != nil {
			return err
		}
		if err := s.attach(); err != nil {
			return fmt.Errorf("%s: %w", s.Target, err)
		}
	}
	return nil
}

func (s source) makeTarget() error {
	if s.dir {
		return os.MkdirAll(s.Target, 0o755)
	}
	if err := os.MkdirAll(path.Dir(s.Target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(s.Target, os.O_CREATE|os.O_RDONLY|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s source) attach() error {
	defer unix.Close(s.fd)
	return unix.MoveMount(s.fd, "", unix.AT_FDCWD, s.Target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

func sealRoot(readOnly bool) error {
	if !readOnly {
		return nil
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
