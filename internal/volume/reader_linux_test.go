package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// The proxy of hashicorp/consul-ecs runs as 5995 without the group of our files.
func TestAllowedReaderReadsAReplacedSecret(t *testing.T) {
	t.Parallel()
	dir := openDir(t, 0o777)
	path := filepath.Join(dir, "token")
	s := Secrets{Dir: dir, Group: GroupOfDir, Log: hclog.NewNullLogger()}
	if err := s.Write(path, []byte("first"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := func(uid uintptr) (text string, err error) {
		err = asUser(t, uid, func() error {
			data, err := os.ReadFile(path)
			text = string(data)
			return err
		})
		return text, err
	}
	if _, err := read(5995); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("before: %v, want no permission", err)
	}
	if err := AllowReader(path, 5995, ModeSecret); err != nil {
		t.Fatal(err)
	}
	if text, err := read(5995); text != "first" || err != nil {
		t.Errorf("after: %q, %v", text, err)
	}
	if err := ReplaceSecret(path, "first", []byte("second")); err != nil {
		t.Fatal(err)
	}
	if text, err := read(5995); text != "second" || err != nil {
		t.Errorf("after the replacement: %q, %v", text, err)
	}
	if _, err := read(5997); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another user: %v, want no permission", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o640 {
		t.Errorf("mode %s, want 0640", got)
	}
}

// A file of mode 0600 stays closed to its group, which is root's in most containers.
func TestReaderOfAPrivateFileIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := Write(path, []byte("first"), 0o600, KeepGroup); err != nil {
		t.Fatal(err)
	}
	if err := AllowReader(path, 5995, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceSecret(path, "first", []byte("second")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1024)
	n, err := syscall.Getxattr(path, aclAttribute, got)
	if err != nil {
		t.Fatal(err)
	}
	const none = "\xff\xff\xff\xff"
	want := "\x02\x00\x00\x00" + "\x01\x00\x06\x00" + none + "\x02\x00\x04\x00\x6b\x17\x00\x00" + "\x04\x00\x00\x00" +
		none + "\x10\x00\x04\x00" + none + "\x20\x00\x00\x00" + none
	if string(got[:n]) != want {
		t.Errorf("access control list %x, want %x", got[:n], want)
	}
}
