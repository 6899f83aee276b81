// Package volume is what commands do with the volume that the containers of a
// task share: check it before anything else is at stake, copy this program onto
// it, keep tokens there.
//
// Flow: 1. CheckDir proves that the directory can be written; 2. CopySelf puts
// our executable there, for containers whose image does not hold it; 3. Secrets
// writes token files for those who may read them.
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
	"path/filepath"
	"runtime"
	"syscall"
)

// CheckDir reports whether this process can create files in dir, by creating one,
// and replace those of the given names. Its error names the directory's mode
// and owner, our UID and GID, and what to change.
func CheckDir(dir string, names ...string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory %s does not exist (running as uid %d, gid %d): mount the task's shared volume "+
			"there in this container, read-write",
			dir, os.Geteuid(), os.Getegid())
	case err != nil:
		return fmt.Errorf("stat directory %s: %w (running as uid %d, gid %d): run this container as a user who may "+
			"enter the directories above it",
			dir, cause(err), os.Geteuid(), os.Getegid())
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory (mode %s): mount the task's shared volume there or name another "+
			"directory", dir, info.Mode())
	}
	f, err := os.CreateTemp(dir, checkFile)
	if err != nil {
		return notWritable(dir, info, err)
	}
	_, err = f.WriteString("room?") // an empty file fits onto a full volume
	f.Close()
	if err := errors.Join(err, os.Remove(f.Name())); err != nil {
		return notWritable(dir, info, err)
	}
	for _, name := range names {
		if err := checkReplace(dir, info, name); err != nil {
			return err
		}
	}
	return nil
}

// checkFile is the pattern of the files that checks create.
const checkFile = ".consul-ecs-check.*"

// checkReplace refuses a file that a sticky directory, such as /tmp, keeps for
// its owner.
func checkReplace(dir string, info fs.FileInfo, name string) error {
	file, err := os.Lstat(filepath.Join(dir, name))
	if err != nil || info.Mode()&fs.ModeSticky == 0 {
		return nil // what is not there can be created
	}
	us := uint32(os.Geteuid())
	owner, ok := file.Sys().(*syscall.Stat_t)
	of, _ := info.Sys().(*syscall.Stat_t)
	if !ok || us == 0 || us == owner.Uid || us == of.Uid {
		return nil
	}
	return fmt.Errorf("file %s cannot be replaced: it belongs to uid %d and the directory is sticky (running as uid "+
		"%d, gid %d; directory has mode %04o): run this container as that user, or take the sticky bit (mode 1000) "+
		"from the directory",
		filepath.Join(dir, name), owner.Uid, us, os.Getegid(), unixMode(info))
}

// checkGroup reports whether this process can give files in dir to the group.
func checkGroup(dir string, gid int) error {
	f, err := os.CreateTemp(dir, checkFile)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Chown(-1, gid); err != nil {
		return fmt.Errorf("files in %s cannot be given to group %d: %w (running as uid %d, gid %d): run this "+
			"container with that group or as root, or name a group it has",
			dir, gid, cause(err), os.Geteuid(), os.Getegid())
	}
	return nil
}

// cause returns err without the path, which the message has already or which is made up.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// unixMode returns a mode as chmod takes it.
func unixMode(info fs.FileInfo) uint32 {
	mode := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

func notWritable(dir string, info fs.FileInfo, err error) error {
	err = cause(err)
	owner := "unknown"
	remedy := fmt.Sprintf("let the image that mounts the volume first give the directory to %d:%d", os.Geteuid(),
		os.Getegid())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
		remedy = fmt.Sprintf("run this container as that owner (\"user\": %q in the container definition), or %s",
			owner, remedy)
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		remedy = "remove readOnly from this container's mount point"
	case Full(err):
		remedy = fullRemedy
	}
	return fmt.Errorf("directory %s is not writable: %w (running as uid %d, gid %d; directory has mode %04o, owner "+
		"%s): %s",
		dir, err, os.Geteuid(), os.Getegid(), unixMode(info), owner, remedy)
}

// Full reports whether err is of a write to a volume without room.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const fullRemedy = "increase the size of the volume"

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
	return writeFrom(dst, self, owners{0o755, keepOwner, KeepGroup}, nil)
}
