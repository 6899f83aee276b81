package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// The proxy of hashicorp/consul-ecs runs as 5995 without the group of our files.
func TestAllowedReaderReadsASecretAlsoAfterItsReplacement(t *testing.T) {
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
	if err := AllowReader(path, 5995); err != nil {
		t.Fatal(err)
	}
	if text, err := read(5995); text != "first" || err != nil {
		t.Errorf("after: %q, %v", text, err)
	}
	if err := ReplaceSecret(path, []byte("second")); err != nil {
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
