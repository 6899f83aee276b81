package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// GroupOfDir, as a group ID, stands for the group of the directory.
const GroupOfDir = -1

// ModeSecret is for us and the file group.
const ModeSecret = 0o640

// Secrets writes the files that hold a token.
type Secrets struct {
	Dir string
	// Group is the files' group ID, or GroupOfDir.
	Group int
	// Compat gives files the modes of version 0.6 and the group we have.
	Compat bool
	Log    hclog.Logger
}

// Check reports whether Write can replace the files of these names in Dir, by
// creating others. Its error has the remedy.
func (s Secrets) Check(names ...string) error {
	if err := CheckDir(s.Dir, names...); err != nil {
		return fmt.Errorf("check bootstrapDir: %w", err)
	}
	if s.Group == GroupOfDir || s.Compat {
		return nil
	}
	if err := checkGroup(s.Dir, s.Group); err != nil {
		return fmt.Errorf("check -file-group: %w", err)
	}
	return nil
}

// Write replaces path, which is in Dir: 0640 with the file group, or with
// Compat as version 0.6 did.
func (s Secrets) Write(path string, data []byte, compat os.FileMode) error {
	if s.Compat {
		return Write(path, data, compat, KeepGroup)
	}
	if s.Group != GroupOfDir {
		return Write(path, data, ModeSecret, s.Group)
	}
	gid, err := groupOf(s.Dir)
	if err != nil {
		return err
	}
	err = Write(path, data, ModeSecret, gid)
	if errors.Is(err, fs.ErrPermission) {
		// We may write here without belonging to the directory's group.
		s.Log.Warn("cannot change the file to the directory's group, keeping this process's; other containers that "+
			"must read it need this group, or use -file-group or -compat",
			logkey.Path, path, logkey.Error, err)
		return Write(path, data, ModeSecret, KeepGroup)
	}
	return err
}

// Previous returns the token that an earlier run has left in the file of that name, empty
// when there is none. A file that cannot be read is logged.
func (s Secrets) Previous(name string) string {
	secret, err := ReadSecret(filepath.Join(s.Dir, name))
	if err != nil {
		s.Log.Warn("previous token could not be read and stays in Consul until the controller removes it",
			logkey.Error, err)
	}
	return secret
}

func groupOf(dir string) (int, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, fmt.Errorf("find the group of bootstrapDir: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid), nil
	}
	return KeepGroup, nil
}

// ErrForeign means that what is at the path of a secret is not the file that was written there:
// a link, a pipe or a device, or another content.
var ErrForeign = errors.New("not the file that was written there")

// maxSecret bounds the content of a file with a secret.
const maxSecret = 1 << 20

// ReadSecret returns the content of a file without blanks around it, empty when
// there is no file. It follows no link.
func ReadSecret(path string) (string, error) {
	f, data, err := openSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), f.Close()
}

// openSecret opens a regular file and reads it. A pipe does not make it wait. A directory is
// nothing to replace, and an error of its own.
func openSecret(path string) (f *os.File, data []byte, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, nil, fmt.Errorf("%s is a link: %w", path, ErrForeign)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fmt.Errorf("%s is no regular file (mode %s): %w", path, info.Mode(), ErrForeign)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s is longer than %d bytes: %w", path, maxSecret, ErrForeign)
	}
	return f, data, err
}

// CheckReplaceSecret reports whether ReplaceSecret can replace the file. Its error says
// what to change.
func CheckReplaceSecret(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("find the owner of the file to replace: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (mode %s), remove it: %w", path, info.Mode(), ErrForeign)
	}
	old := ownersOf(info)
	dir := filepath.Dir(path)
	if err := CheckDir(dir, filepath.Base(path)); err != nil || old.public() {
		return err
	}
	return checkGroup(dir, old.gid)
}

// ReplaceSecret replaces a secret in the file that has it by another one. The file keeps its
// mode, group and readers, and its owner if this is root, whichever container has written it.
// A file that does not have the secret may be planted, and gives ErrForeign: its mode, owner
// and readers are the choice of who did that.
func ReplaceSecret(path, secret string, data []byte) error {
	f, content, err := openSecret(path)
	if err != nil {
		return fmt.Errorf("find the file to replace: %w", err)
	}
	defer f.Close()
	if secret == "" || strings.TrimSpace(string(content)) != secret {
		return fmt.Errorf("%s does not have the secret that was written to it: %w", path, ErrForeign)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	old := ownersOf(info)
	err = writeFrom(path, bytes.NewReader(data), old, f)
	if errors.Is(err, fs.ErrPermission) && old.public() {
		return Write(path, data, old.mode, KeepGroup)
	}
	return err
}

// owners are what a replaced file keeps.
type owners struct {
	mode     os.FileMode
	uid, gid int
}

// public reports that readers of the file need neither its owner nor its group.
func (o owners) public() bool { return o.mode&0o004 != 0 }

func ownersOf(info fs.FileInfo) owners {
	o := owners{info.Mode().Perm(), keepOwner, KeepGroup}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		o.gid = int(st.Gid)
		if os.Geteuid() == 0 {
			o.uid = int(st.Uid)
		}
	}
	return o
}
