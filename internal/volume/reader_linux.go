package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
)

// aclAttribute holds a file's access control list (acl(5)), in the form of
// linux/posix_acl_xattr.h: a version, then entries of tag, permissions and ID.
const aclAttribute = "system.posix_acl_access"

// readable is 0640 and the right to read for one user more.
func readable(uid uint32) []byte {
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
	}{{owner, read | write, noID}, {user, read, uid}, {group, read, noID}, {mask, read, noID}, {other, 0, noID}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.permissions)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

// AllowReader lets one user more read a file that Secrets has written. Only the file's
// owner and root may do it, on a file system that has access control lists.
func AllowReader(path string, uid uint32) error {
	if err := syscall.Setxattr(path, aclAttribute, readable(uid), 0); err != nil {
		return fmt.Errorf("let user %d read %s: %w", uid, path, err)
	}
	return nil
}

// copyReaders gives a file the access control list of another, if that has one.
func copyReaders(from, to string) error {
	list := make([]byte, 1024)
	n, err := syscall.Getxattr(from, aclAttribute, list)
	switch {
	case errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.ENOTSUP):
		return nil
	case err == nil:
		err = syscall.Setxattr(to, aclAttribute, list[:n], 0)
	}
	if err != nil {
		return fmt.Errorf("copy the access control list of %s: %w", from, err)
	}
	return nil
}
