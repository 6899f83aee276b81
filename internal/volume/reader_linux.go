package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// aclAttribute holds a file's access control list (acl(5)), in the form of
// linux/posix_acl_xattr.h: a version, then entries of tag, permissions and ID.
const aclAttribute = "system.posix_acl_access"

// readable returns the access-control list for 0600 or, if the group may read, 0640, and the right to read for one
// more user.
func readable(uid uint32, mode fs.FileMode) []byte {
	const (
		version                         = 2
		owner, user, group, mask, other = 0x01, 0x02, 0x04, 0x10, 0x20
		read, write                     = 4, 2
		noID                            = ^uint32(0)
	)
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range []struct {
		tag, permissions uint16
		id               uint32
	}{
		{owner, read | write, noID}, {user, read, uid}, {group, uint16(mode>>3) & read, noID}, {mask, read, noID},
		{other, 0, noID},
	} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.permissions)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

// AllowReader lets one user more read a file that was written with the mode, 0600 or 0640.
// Only the file's owner and root may do it, on a file system that has access control
// lists. It follows no link. The file's mode has the list's mask then in place of the group's right: 0640.
func AllowReader(path string, uid uint32, mode fs.FileMode) error {
	f, _, err := openSecret(path)
	if err == nil {
		defer f.Close()
		err = unix.Fsetxattr(int(f.Fd()), aclAttribute, readable(uid, mode), 0)
	}
	if err != nil {
		return fmt.Errorf("let user %d read %s: %w", uid, path, err)
	}
	return nil
}

// copyReaders gives a file the access control list of another, and reports whether that
// has one.
func copyReaders(from, to *os.File) (bool, error) {
	list := make([]byte, 1024)
	n, err := unix.Fgetxattr(int(from.Fd()), aclAttribute, list)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return false, nil
	case err == nil:
		err = unix.Fsetxattr(int(to.Fd()), aclAttribute, list[:n], 0)
	}
	if err != nil {
		return false, fmt.Errorf("copy the access control list of %s: %w", from.Name(), err)
	}
	return true, nil
}
