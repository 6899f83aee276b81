// Package volume is what commands do with the volume that the containers of a
// task share: check it before anything else is at stake, and copy this program
// onto it.
//
// Flow: 1. CheckDir proves that the directory can be written; 2. CopySelf puts
// our executable there, for containers whose image does not hold it.
//
// Never does: create the directory: where it is missing, the mount is missing,
// and a directory of our own would be invisible to the other containers.
// Start reading at: CheckDir.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/atomicfile"
)

// CheckDir says whether this process can create files in dir, by creating one.
// Its error names the directory's mode and owner, our UID and GID, and what to
// change.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %s does not exist (running as uid %d, gid %d): mount the task's shared volume there in this container, read-write",
			dir, os.Geteuid(), os.Getegid())
	case err != nil:
		return fmt.Errorf("look at directory %s (running as uid %d, gid %d): %w", dir, os.Geteuid(), os.Getegid(), err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory (mode %s): mount the task's shared volume there or name another directory", dir, info.Mode())
	}
	f, err := os.CreateTemp(dir, ".consul-ecs-check.*")
	if err != nil {
		return notWritable(dir, info, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

func notWritable(dir string, info fs.FileInfo, err error) error {
	// The cause without the made-up file name.
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	owner := "unknown"
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	}
	remedy := "run this container as that owner (\"user\" in the container definition), or give the directory that owner or mode 0777 in the image that mounts the volume first"
	if errors.Is(err, syscall.EROFS) {
		remedy = "remove readOnly from this container's mount point"
	}
	return fmt.Errorf("directory %s is not writable: %w (running as uid %d, gid %d; directory has mode %04o, owner %s): %s",
		dir, err, os.Geteuid(), os.Getegid(), info.Mode().Perm(), owner, remedy)
}

// CopySelf copies the running executable to dst, mode 0755. It replaces dst in
// one step, so a copy that is being executed stays intact for its users.
func CopySelf(dst string) error {
	path := "/proc/self/exe" // the open file, even when its name is gone
	if runtime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return fmt.Errorf("copy this program to %s: %w", dst, err)
		}
	}
	self, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", dst, err)
	}
	defer self.Close()
	return atomicfile.WriteFrom(dst, self, 0o755, atomicfile.KeepGroup)
}
