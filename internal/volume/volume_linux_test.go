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
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o555} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
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
		fmt.Sprintf("running as uid %d, gid %d; directory has mode 0555, owner %d:%d", os.Geteuid(), os.Getegid(), os.Geteuid(), os.Getegid()),
		"run this container as that owner")
}

func TestCheckDirOnAReadOnlyMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	checked, mounted := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the mount namespace is this thread's
		err := errors.Join(
			unix.Unshare(unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("none", dir, "tmpfs", unix.MS_RDONLY, ""))
		mounted <- err
		if err == nil {
			checked <- CheckDir(dir)
		}
	}()
	if err := <-mounted; err != nil {
		testkit.Missing(t, "a read-only mount needs more rights: "+err.Error())
	}
	wantError(t, <-checked, "read-only file system", "remove readOnly from this container's mount point")
}
