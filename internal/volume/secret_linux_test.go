package volume

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestSecretsModeAndGroup(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		secrets Secrets
		// dirGroup is the directory's group, user whom we are.
		dirGroup, user int
		want           string
		warned         bool
	}{
		"the directory's group":       {Secrets{Group: GroupOfDir}, 4242, 0, "0640 4242", false},
		"a group of our own choice":   {Secrets{Group: 4343}, 4242, 0, "0640 4343", false},
		"as version 0.6":              {Secrets{Group: 4343, Compat: true}, 4242, 0, "0644 0", false},
		"a group that we are not in":  {Secrets{Group: GroupOfDir}, 4242, 5996, "0640 5996", true},
		"as version 0.6, as any user": {Secrets{Compat: true}, 4242, 5996, "0644 5996", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t, 0o777)
			path := filepath.Join(dir, "token")
			var log bytes.Buffer
			s := tc.secrets
			s.Dir, s.Log = dir, hclog.New(&hclog.LoggerOptions{Output: &log})
			err := asUser(t, 0, func() error { return os.Chown(dir, -1, tc.dirGroup) })
			if err == nil {
				err = asUser(t, uintptr(tc.user), func() error { return s.Write(path, []byte("secret"), 0o644) })
			}
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%04o %d", info.Mode().Perm(), info.Sys().(*syscall.Stat_t).Gid); got != tc.want {
				t.Errorf("mode and group are %s, want %s", got, tc.want)
			}
			if warned := strings.Contains(log.String(), "-file-group or -compat"); warned != tc.warned ||
				strings.Contains(log.String(), "secret") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

func TestSecretsWithoutDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	s := Secrets{Dir: dir, Group: GroupOfDir, Log: hclog.NewNullLogger()}
	wantError(t, s.Write(filepath.Join(dir, "token"), nil, 0o644), "find the group", dir)
}

func TestReadSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	if err := os.WriteFile(path, []byte(" secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSecret(path); got != "secret" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ReadSecret(path + ".absent"); got != "" || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
	if _, err := ReadSecret(dir); err == nil {
		t.Error("a directory was read")
	}
}

// TestReplaceSecret: the readers of the file stay the same, whichever user replaces it, or it is refused
// before there is something to write.
func TestReplaceSecret(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		uid, gid int
		mode     os.FileMode
		user     int    // who replaces it
		want     string // mode, owner, group
		refused  string
	}{
		"root keeps owner and group":      {100, 4242, 0o640, 0, "0640 100 4242", ""},
		"a user who has the file's group": {0, 5996, 0o640, 5996, "0640 5996 5996", ""},
		"a public file, as in 0.6":        {0, 4242, 0o644, 5996, "0644 5996 5996", ""},
		"a user without the file's group": {0, 4242, 0o640, 5996, "0640 0 4242", "cannot be given to group 4242"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t, 0o777)
			path := filepath.Join(dir, "token")
			err := asUser(t, 0, func() error {
				return errors.Join(os.WriteFile(path, []byte("old"), tc.mode), os.Chown(path, tc.uid, tc.gid),
					os.Chmod(path, tc.mode))
			})
			if err != nil {
				t.Fatal(err)
			}
			err = asUser(t, uintptr(tc.user), func() error {
				if err := CheckReplaceSecret(path); err != nil {
					return err
				}
				return ReplaceSecret(path, "old", []byte("new"))
			})
			testkit.ErrorContains(t, err, tc.refused)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			owner := info.Sys().(*syscall.Stat_t)
			if got := fmt.Sprintf("%04o %d %d", info.Mode().Perm(), owner.Uid, owner.Gid); got != tc.want {
				t.Errorf("file has %s, want %s", got, tc.want)
			}
			want := "new"
			if tc.refused != "" {
				want = "old"
			}
			var content []byte
			err = asUser(t, 0, func() error {
				content, err = os.ReadFile(path)
				return err
			})
			if err != nil || string(content) != want {
				t.Errorf("content %q, %v", content, err)
			}
		})
	}
}

func TestReplaceSecretWithoutFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	for _, err := range []error{CheckReplaceSecret(path), ReplaceSecret(path, "old", []byte("new"))} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error: %v", err)
		}
	}
}

// planted puts something into the place of a file with the secret "old", which lies beside it.
var planted = map[string]func(path, other string) error{
	"another content": func(path, _ string) error { return os.WriteFile(path, []byte("theirs"), 0o666) },
	"a link to the file": func(path, other string) error {
		return errors.Join(os.Chmod(other, 0o666), os.Symlink(other, path))
	},
	"a link to nothing": func(path, other string) error { return os.Symlink(other+".none", path) },
	"a pipe":            func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
	"a long file":       func(path, _ string) error { return os.WriteFile(path, make([]byte, maxSecret+1), 0o666) },
}

// What a user puts there who may write the directory gives no mode and no readers to a secret.
func TestPlantedFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, plant := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, other := filepath.Join(dir, "token"), filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plant(path, other); err != nil {
				t.Fatal(err)
			}
			if err := ReplaceSecret(path, "old", []byte("new")); !errors.Is(err, ErrForeign) {
				t.Errorf("replaced: %v", err)
			}
			unread := name == "another content" || name == "a long file" // only ReplaceSecret reads it
			if err := CheckReplaceSecret(path); !unread && !errors.Is(err, ErrForeign) {
				t.Errorf("checked: %v", err)
			}
			if got, err := ReadSecret(path); name != "another content" && !errors.Is(err, ErrForeign) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			if err := AllowReader(path, 5995, 0o600); name != "another content" && !errors.Is(err, ErrForeign) {
				t.Errorf("a reader was allowed: %v", err)
			}
			if content, err := os.ReadFile(other); string(content) != "old" || err != nil {
				t.Errorf("the other file has %q, %v", content, err)
			}
		})
	}
}

// Without the secret before there is no file that was written.
func TestNoSecretIsInNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceSecret(path, "", []byte("new")); !errors.Is(err, ErrForeign) {
		t.Errorf("replaced: %v", err)
	}
}
