package volume

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
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
			if warned := strings.Contains(log.String(), "-file-group or -compat"); warned != tc.warned || strings.Contains(log.String(), "secret") {
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
