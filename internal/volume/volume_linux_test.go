package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"golang.org/x/sys/unix"
)

func TestCheckDirNotWritableNamesModeOwnerAndRemedy(t *testing.T) {
	t.Parallel()
	dir := openDir(t, 0o555)
	err := make(chan error)
	go func() {
		// Of this thread only, which ends with the goroutine: without root's
		// file system rights.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			unix.SetfsuidRetUid(65534)
		}
		err <- CheckDir(dir)
	}()
	wantError(t, <-err,
		"directory "+dir+" is not writable: permission denied",
		fmt.Sprintf("running as uid %d, gid %d; directory has mode 0555, owner %d:%d", os.Geteuid(), os.Getegid(),
			os.Geteuid(), os.Getegid()),
		"run this container as that owner")
}

func TestCheckDirOnReadOnlyAndFullVolumes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags   uintptr
		options string
		fill    int
		want    []string
		written string
	}{
		"read-only": {
			flags: unix.MS_RDONLY, want: []string{
				"read-only file system", "remove readOnly from this container's mount point",
			}, written: ": read-only file system",
		},
		"full": {
			options: "size=4k", fill: 4096,
			want:    []string{"no space left on device", "increase the size of the volume"},
			written: ": no space left on device: increase the size of the volume",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			checked, mounted, written := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			go func() {
				runtime.LockOSThread() // the mount namespace is this thread's
				err := errors.Join(
					unix.Unshare(unix.CLONE_NEWNS),
					unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
					unix.Mount("none", dir, "tmpfs", c.flags, c.options))
				if err == nil && c.fill > 0 {
					err = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, c.fill), 0o600)
				}
				mounted <- err
				if err == nil {
					checked <- CheckDir(dir)
					written <- Write(filepath.Join(dir, "file"), []byte("text"), 0o600, KeepGroup)
				}
			}()
			if err := <-mounted; err != nil {
				testkit.Missing(t, "a mount needs more rights: "+err.Error())
			}
			wantError(t, <-checked, c.want...)
			err := <-written
			wantError(t, err, c.written)
			if full := c.fill > 0; Full(err) != full {
				t.Errorf("full = %v: %v", !full, err)
			}
		})
	}
}

// asUser runs f on a separate thread that belongs to uid and gid.
func asUser(t *testing.T, id uintptr, f func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "only root can become another user")
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, id, id, id); errno != 0 {
				done <- errno
				return
			}
		}
		done <- f()
	}()
	return <-done
}

func TestCheckDirOfStickyDirectory(t *testing.T) {
	t.Parallel()
	dir := openDir(t, 0o777|os.ModeSticky)
	if err := os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir(dir, "theirs"); err != nil {
		t.Errorf("root: %v", err)
	}
	err := asUser(t, 5996, func() error { return CheckDir(dir, "absent", "theirs") })
	wantError(t, err, "file "+filepath.Join(dir, "theirs")+" cannot be replaced", "belongs to uid 0",
		"running as uid 5996, gid 5996; directory has mode 1777", "run this container as that user")

	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := asUser(t, 5996, func() error { return CheckDir(dir, "theirs") }); err != nil {
		t.Errorf("not sticky: %v", err)
	}
}

func TestCheckGroup(t *testing.T) {
	t.Parallel()
	dir := openDir(t, 0o777)
	for name, c := range map[string]struct{ user, group int }{"root": {0, 4242}, "own group": {5996, 5996}} {
		if err := asUser(t, uintptr(c.user), func() error { return checkGroup(dir, c.group) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := asUser(t, 5996, func() error { return checkGroup(dir, 4242) })
	wantError(t, err, "files in "+dir+" cannot be given to group 4242: operation not permitted",
		"running as uid 5996, gid 5996", "run this container with that group")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left %v", entries)
	}
}

func TestCheckDirBelowAClosedDirectory(t *testing.T) {
	t.Parallel()
	above := openDir(t, 0o700)
	dir := filepath.Join(above, "volume")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := asUser(t, 5996, func() error { return CheckDir(dir) })
	wantError(t, err, "stat directory "+dir+": permission denied", "running as uid 5996, gid 5996",
		"may enter the directories above it")
}

// openDir makes a directory of that mode that every user can reach.
func openDir(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for path, m := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: mode} {
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
